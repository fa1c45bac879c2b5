"""Which runs of which turns count: those in which the machine was as in the others."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tlp_tvm.machine.core_distance import placements

SLOWED = 1.25
"""A turn that takes so many times the lowest, in the median of what is timed, is left out for all alike."""

STEADY = 0.05
"""Of the median: more turns are taken while the middle half of what is compared is wider."""

SHARE = 1 / 3
"""Of a turn's stretches that count, at least; else the turn does not."""


@dataclass(frozen=True)
class Stretch:
    """Some of a library's runs, one after the other.

    Attributes:
        seconds: of a run, the median.
        before: seconds of a cache line's way from one core to the other and back, before them.
        after: likewise, after them.
    """

    seconds: float
    before: float = 0.0
    after: float = 0.0


@dataclass(frozen=True)
class Turn:
    """What counts of one of a library's turns.

    Attributes:
        seconds: of a run, the median of stretches.
        round_trip: of a cache line between the cores, likewise.
    """

    seconds: float
    round_trip: float


Round = Mapping[str, Sequence[Stretch]]
"""A turn of each, by name."""


def in_one_place(taken: Sequence[Round], names: Sequence[str]) -> dict[str, list[Turn]]:
    """The turns of each that count, if the host moves cores about.

    Stretches count in which the cores were in one place, the same for all libraries, and turns in which no
    other work slowed the machine down.

    Args:
        taken: in order.
        names: of what is timed; each has a turn in every round.

    Returns:
        Of the place in which the library with the fewest turns has most.
    """
    stretches = [each for turns in taken for turn in turns.values() for each in turn]
    known = placements(trip for each in stretches for trip in (each.before, each.after))
    found = [_undisturbed(taken, names, *place) for place in known]
    return max(found, key=fewest, default={name: [] for name in names})


def anywhere(taken: Sequence[Round], names: Sequence[str]) -> dict[str, list[Turn]]:
    """The turns of each that count, wherever the cores were.

    Args:
        taken: in order, at least one.
        names: of what is timed; each has a turn in every round.
    """
    return _undisturbed(taken, names, 0.0, float("inf"))


def fewest(found: Mapping[str, Sequence[Turn]]) -> int:
    """Turns of the library that has the fewest."""
    return min(map(len, found.values()), default=0)


def _undisturbed(
    taken: Sequence[Round], names: Sequence[str], nearest: float, farthest: float
) -> dict[str, list[Turn]]:
    """The turns with cores so far apart, of rounds in which they were, in the median, near their lowest."""
    there = [
        {name: turn for name in names if (turn := _turn(each[name], nearest, farthest)) is not None}
        for each in taken
    ]
    lowest: dict[str, float] = {}
    for turns in there:
        for name, turn in turns.items():
            lowest[name] = min(turn.seconds, lowest.get(name, turn.seconds))
    quiet = [
        turns
        for turns in there
        if turns and statistics.median(turn.seconds / lowest[name] for name, turn in turns.items()) <= SLOWED
    ]
    return {name: [turns[name] for turns in quiet or there if name in turns] for name in names}


def _turn(stretches: Sequence[Stretch], nearest: float, farthest: float) -> Turn | None:
    """Of the stretches with cores so far apart; None where they are too few."""
    found = [
        each
        for each in stretches
        if nearest <= min(each.before, each.after) and max(each.before, each.after) <= farthest
    ]
    if not found or len(found) < SHARE * len(stretches):
        return None
    seconds, trips = ([each.seconds for each in found], [max(each.before, each.after) for each in found])
    return Turn(statistics.median(seconds), statistics.median(trips))


def steady(found: Mapping[str, Sequence[Turn]], first: str) -> bool:
    """Whether more turns would hardly move what is compared.

    Args:
        found: turns of each that count, at least one.
        first: what is compared with the fastest of the others.
    """
    seconds = {name: [turn.seconds for turn in turns] for name, turns in found.items()}
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    for name in sorted(medians, key=lambda name: (name != first, medians[name]))[:2]:
        low, high = np.quantile(seconds[name], (0.25, 0.75))
        if high - low > STEADY * medians[name]:
            return False
    return True
