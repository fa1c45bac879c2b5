"""Which turns count: those in which the machine was as in the others."""

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


@dataclass(frozen=True)
class Turn:
    """One of a library's turns.

    Attributes:
        seconds: of a run.
        round_trips: of a cache line between the cores, before and after; seconds.
    """

    seconds: float
    round_trips: tuple[float, float] = (0.0, 0.0)

    @property
    def round_trip(self) -> float:
        """Of both, the longer; seconds."""
        return max(self.round_trips)


Round = Mapping[str, Turn]
"""A turn of each, by name."""


def in_one_place(taken: Sequence[Round], names: Sequence[str]) -> dict[str, list[Turn]]:
    """The turns of each that count, if the host moves cores about.

    They are those in which the cores were in one place, the same for all libraries, and in which no other
    work slowed the machine down.

    Args:
        taken: in order.
        names: of what is timed; each has a turn in every round.

    Returns:
        Of the place in which the library with the fewest turns has most.
    """
    where = _places(taken, names)
    known = sorted({place for each in where for place in each.values() if place is not None})
    found = [_undisturbed(taken, where, names, place) for place in known]
    return max(found, key=fewest, default={name: [] for name in names})


def anywhere(taken: Sequence[Round], names: Sequence[str]) -> dict[str, list[Turn]]:
    """The turns of each that count, wherever the cores were.

    Args:
        taken: in order, at least one.
        names: of what is timed; each has a turn in every round.
    """
    return _undisturbed(taken, [dict.fromkeys(names, 0) for _ in taken], names, 0)


def fewest(found: Mapping[str, Sequence[Turn]]) -> int:
    """Turns of the library that has the fewest."""
    return min(map(len, found.values()), default=0)


def _places(taken: Sequence[Round], names: Sequence[str]) -> list[dict[str, int | None]]:
    """The number of the placement during each turn; None where it changed."""
    turns = [turn for each in taken for turn in each.values()]
    known = placements(seconds for turn in turns for seconds in turn.round_trips)

    def place_of(turn: Turn) -> int | None:
        first, last = (
            next(i for i, (low, high) in enumerate(known) if low <= seconds <= high)
            for seconds in turn.round_trips
        )
        return first if first == last else None

    return [{name: place_of(each[name]) for name in names} for each in taken]


def _undisturbed(
    taken: Sequence[Round], where: Sequence[Mapping[str, int | None]], names: Sequence[str], place: int
) -> dict[str, list[Turn]]:
    """The turns of one placement; but of rounds in which, in the median, each was far above its lowest."""
    there = [
        {name: each[name] for name in names if at[name] == place}
        for each, at in zip(taken, where, strict=True)
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
