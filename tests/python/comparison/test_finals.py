"""The fastest programs of each search are timed once more, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tlp_tvm.comparison.finals import FINALISTS, PASSES, timed_again
from tlp_tvm.measuring.child import RUNTIME, Outcome


class Found:
    """Programs of a search; each is what it takes, in order of its passes."""

    def __init__(self, *programs: list[float]) -> None:
        self.programs = list(programs)

    def fastest(self, count: int) -> list[list[float]]:
        return self.programs[:count]


class Pool:
    """Times a program as it says itself; below 0 it fails."""

    def __init__(self) -> None:
        self.orders: list[list[int]] = []

    def build(self, programs: Sequence[list[float]]) -> list[tuple[int, Outcome]]:
        self.orders.append([id(program) for program in programs])
        return [(i, Outcome((), 0, "", 0.0)) for i in range(len(programs))]

    def run_all(self, built: Any, programs: Sequence[list[float]]) -> Iterator[tuple[int, Outcome]]:
        for i in reversed(range(len(built))):  # in any order, as programs may be timed again
            cost = programs[i][(len(self.orders) - 1) % len(programs[i])]
            yield i, Outcome((cost,), 0, "", 0.0) if cost > 0 else Outcome((), RUNTIME, "gone", 0.0)


def test_the_lowest_of_all_passes_and_finalists_counts() -> None:
    pool: Any = Pool()
    searches: Any = [Found([3.0, 2.0], [4.0], [9.0], [1.0]), Found([-1.0, 5.0]), Found([-1.0]), Found()]

    assert FINALISTS == 3
    assert timed_again(searches, pool) == [2.0, 5.0, float("inf"), float("inf")]
    assert len(pool.orders) == PASSES
    assert pool.orders[0] == pool.orders[1][::-1]


def test_a_search_that_found_nothing_has_no_last_latency() -> None:
    assert timed_again([], Pool()) == []
    assert np.isinf(timed_again([Found()], Pool())[0])  # type: ignore[list-item]
