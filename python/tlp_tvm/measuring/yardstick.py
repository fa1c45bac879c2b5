"""Detects a slowed-down machine by timing the fastest program of a task once more.

A virtual machine is slowed down by what its host does besides: by a tenth for a minute, or to half its speed
for some seconds (two virtual cores on one real one), and nothing inside shows why. A program that was timed
at such a time looks slow for ever. What it does to one program of a task it does to the others, so the
fastest so far is timed after each that may be as fast; while it is slower than it was, neither timing counts
for much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tlp_tvm.latency import latency_of_costs

STEADY = 1.04
"""Times as slow as before that the machine still counts as steady; timings of a program differ by 1 to 2%."""

WORTH_IT = 1.5
"""A program that takes longer than so many times its task's lowest latency has one timing."""

NEAR = 1.15
"""Up to so many times the lowest latency, with the slowing taken off, a doubtful program is timed again."""

_SLOWEST = 2.0
"""Times as slow as before that a host makes a machine."""

MOST = 32
"""Tasks whose fastest program is kept."""

TimeAgain = Callable[[], float]
"""Times a program anew, briefly: seconds."""


@dataclass
class _Fastest:
    latency: float
    again: TimeAgain


class Yardsticks:
    """The fastest program of each of the latest tasks."""

    def __init__(self) -> None:
        """Begin with none."""
        self._fastest: dict[str, _Fastest] = {}

    def note(self, task: str, costs: tuple[float, ...], again: TimeAgain) -> None:
        """A program was timed.

        Args:
            task: whose program it is.
            costs: seconds a run, of each repeat.
            again: times it anew; kept, with what it holds, while none of the task is faster.
        """
        latency = latency_of_costs(costs)
        known = self._fastest.pop(task, None)
        if known is None or latency < known.latency:
            known = _Fastest(latency, again)
        self._fastest[task] = known  # the latest last
        if len(self._fastest) > MOST:
            del self._fastest[next(iter(self._fastest))]

    def doubtful(self, task: str, costs: tuple[float, ...]) -> bool:
        """Whether a program may be faster than it was just found, and would then be worth knowing.

        Args:
            task: whose program it is; one of it was noted.
            costs: seconds a run, of each repeat.
        """
        fastest, latency = self._fastest[task], latency_of_costs(costs)
        if latency > _SLOWEST * NEAR * fastest.latency:
            return False
        slower = _slower(fastest)
        unsteady = slower > STEADY or max(costs) > STEADY * min(costs)
        return unsteady and latency < NEAR * max(slower, 1.0) * fastest.latency


def _slower(fastest: _Fastest) -> float:
    """Times as slow as it was."""
    now = fastest.again()
    slower = now / fastest.latency
    fastest.latency = min(now, fastest.latency)
    return slower
