"""How far the cores are from each other: a host moves those of a virtual machine about.

Two virtual cores may be threads of one core, may share a cache, or may not. On a Zen 3 a cache line goes from
one to the other and back in 0.12 us where they share one and in 0.52 us where not, and what two threads pass
on to each other takes up to twice as long then.
"""

from __future__ import annotations

from collections.abc import Iterable

_APART = 1.5
"""Times as long as the next shorter round trip: cores are elsewhere."""


def round_trip(threads: int) -> float:
    """Seconds in which a cache line goes from one core to another and back.

    Takes half a millisecond for each core but the first, where they are idle.

    Args:
        threads: of how many cores; the farthest counts.

    Returns:
        The lowest of several timings; 0 where there is one core.
    """
    from tlp_tvm import _core

    return _core.round_trip(threads)


def placements(round_trips: Iterable[float]) -> list[tuple[float, float]]:
    """Where cores have been: round trips of one placement are like each other.

    Args:
        round_trips: seconds, in any order.

    Returns:
        The shortest and the longest of each, in order.
    """
    found: list[tuple[float, float]] = []
    for seconds in sorted(round_trips):
        if found and seconds <= _APART * found[-1][1]:
            found[-1] = (found[-1][0], seconds)
        else:
            found.append((seconds, seconds))
    return found
