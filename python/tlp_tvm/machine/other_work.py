"""How busy other processes keep the machine: whether this is an hour to measure in."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
"""A second."""

_BUSY = (0, 1, 2, 5, 6)
"""Columns of /proc/stat that are work: user, nice, system, irq, softirq."""

_PARENT, _OWN_TIMES = 1, slice(11, 15)
"""Of the fields after the name in /proc/PID/stat: the parent; the process's time, and its dead children's."""


class OtherWork:
    """Cores that processes other than this one and its descendants keep busy."""

    def __init__(
        self,
        proc: Path = Path("/proc"),
        process: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to count.

        Args:
            proc: where the system tells of itself.
            process: whose descendants are no others; None for this one.
            clock: seconds.
        """
        self._proc, self._process, self._clock = proc, process or os.getpid(), clock
        self._last = self._counted()

    def cores(self) -> float:
        """Since the last call; 0 where the system does not tell."""
        (began, before), (now, after) = self._last, self._counted()
        self._last = now, after
        return max(0.0, after - before) / max(now - began, 1e-3)

    def _counted(self) -> tuple[float, float]:
        """A time, and seconds of others' work up to it."""
        try:
            columns = (self._proc / "stat").read_text().splitlines()[0].split()[1:]
            all_ticks = sum(int(columns[i]) for i in _BUSY)
            return self._clock(), (all_ticks - self._own_ticks()) / _TICKS
        except (OSError, ValueError, IndexError):
            return self._clock(), 0.0

    def _own_ticks(self) -> int:
        parents: dict[int, int] = {}
        ticks: dict[int, int] = {}
        for entry in self._proc.iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            parents[int(entry.name)] = int(fields[_PARENT])
            ticks[int(entry.name)] = sum(map(int, fields[_OWN_TIMES]))
        return sum(count for process, count in ticks.items() if self._is_own(process, parents))

    def _is_own(self, process: int, parents: dict[int, int]) -> bool:
        while process and process != self._process:
            process = parents.get(process, 0)
        return process == self._process
