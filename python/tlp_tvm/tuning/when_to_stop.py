"""When a tuning stops measuring: in time for what follows, or when the rest would gain too little."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

LEAST_GAIN = 0.01
"""Of the network's latency, expected of all the time that is left; for less a tuning ends."""

_SHORTEST_S = 120.0
_SHARE = 1 / 2
"""Gains of the last two minutes, or of the last half of the time, tell what to expect; they only get smaller.
One minute without a gain comes by chance: ending bert-384x48-b4 by it lost 1.4% of 200 s, by two 0.0%."""


_LEAST_SHARE = 0.5
"""Of a tuning's minutes after which measuring ends at the earliest, however long builds take."""

_MOST_SHARE = 1 / 3
"""Of a tuning's minutes that are kept for builds: with few minutes, fewer other programs are tried."""

_TUNED = 1.5
"""Times as long as that of the untuned network that a build of the tuned one is taken to take, at first."""

_LINKED = 1.2
"""Times as long as splitting the network took, the same of one that is linked from programs that were
compiled before: TVM's passes over the network are what takes long. Of five networks, 0.6 to 1.2."""

_RELINKED = 0.5
"""Times as long as that takes to link a network anew with other programs, a tenth, and to profile it."""

_TIMING_S = 10.0
"""Of the networks at the end, all together."""


def tuned_build_s(untuned_s: float, compiled: int, program_s: float, split_s: float = 0.0) -> float:
    """Seconds that the tuned network takes to build.

    Args:
        untuned_s: seconds that it took untuned.
        compiled: tasks whose programs are compiled then.
        program_s: seconds that a program took to compile, in the mean; 0 before any was.
        split_s: seconds that splitting the network took, where the code of the others is at hand; else 0.
    """
    if not program_s:
        return _TUNED * untuned_s
    return compiled * program_s + _LINKED * split_s


def search_ends(
    began: float, minutes: float, build_s: float, builds: int, linked: bool = False
) -> float | None:
    """When to stop measuring, so that a tuning ends after its minutes.

    Args:
        began: when it began, seconds of some clock.
        minutes: that it may take; 0 for no limit.
        build_s: seconds that the tuned network takes to build.
        builds: that follow the search, at most.
        linked: whether all but the first, one with TVM's own schedules, and the last are only linked anew.

    Returns:
        Seconds of the same clock; None for no limit.
    """
    if not minutes:
        return None
    whole = minutes * 60
    worth = min(builds, 3 + (_RELINKED if linked else 1) * (builds - 3))
    for_builds = min(worth * build_s, max(build_s, whole * _MOST_SHARE))
    return began + max(whole - for_builds - _TIMING_S, whole * _LEAST_SHARE)


def tries_within(left_s: float, build_s: float, most: int, linked: bool = False) -> int:
    """How many networks of other programs there is time to try, and then to build what was fastest.

    Args:
        left_s: seconds of the tuning that are left; infinity for no limit.
        build_s: seconds that the tuned network took to build.
        most: networks to try.
        linked: whether all but one of them, with TVM's own schedules, are only linked anew.
    """
    builds = (left_s - _TIMING_S) / max(build_s, 1e-3)
    others = (builds - 2) / (_RELINKED if linked else 1)
    return int(max(0, min(most, 1 + others if others > 0 else builds - 1)))


class ExpectedGain:
    """The network's estimated latency over time, and what it foretells."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin; `clock` gives seconds."""
        self._clock = clock
        self._began = math.nan
        self._seen: deque[tuple[float, float]] = deque()

    def note(self, estimate: float, deadline: float) -> bool:
        """Take in the estimate after a measurement.

        Args:
            estimate: latency of the network, seconds; infinity before every task has a program.
            deadline: when measuring ends in any case, as the clock has it.

        Returns:
            Whether less than `LEAST_GAIN` is expected of the time that is left.
        """
        if not math.isfinite(estimate) or estimate <= 0:
            return False
        now = self._clock()
        if not self._seen:
            self._began = now
        self._seen.append((now, estimate))
        window = max(_SHORTEST_S, _SHARE * (now - self._began))
        while len(self._seen) > 1 and self._seen[1][0] <= now - window:
            self._seen.popleft()
        since, before = self._seen[0]
        if now - since < window:
            return False
        rate = math.log(before / estimate) / (now - since)
        return rate * (deadline - now) < LEAST_GAIN
