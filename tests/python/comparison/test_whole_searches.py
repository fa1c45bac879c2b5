"""Searches of whole networks: whose turn it is, and what their table says."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from places import benchmark


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("threads_in_turn", monkeypatch)


@pytest.fixture
def whole(turns: ModuleType) -> ModuleType:
    return importlib.import_module("whole_searches")


def test_the_search_with_the_fewest_programs_is_next(turns: ModuleType) -> None:
    searches = [turns.Searching(name, 0) for name in ("long", "short")]
    per_round = {"long": 4, "short": 1}
    together, order = turns.Turns(searches), []

    def work(search: Any) -> None:
        while len(search.measured) < 8:
            together.next_round(search)
            assert together.holder is search
            order.append(search.name)
            for _ in range(per_round[search.name]):
                together.holder.note("task", 1.0, "")

    together.run(work, lambda _: None)
    assert order == ["long", *["short"] * 4, "long", *["short"] * 4]
    assert [len(each.clock) for each in searches] == [8, 8]
    assert all((np.diff(each.clock) >= 0).all() for each in searches)


def test_each_search_draws_its_own_numbers(turns: ModuleType) -> None:
    def drawn(names: tuple[str, ...]) -> dict[str, list[float]]:
        searches = [turns.Searching(name, 7) for name in names]
        together, found = turns.Turns(searches), {name: [] for name in names}

        def work(search: Any) -> None:
            for _ in range(3):
                together.next_round(search)
                found[search.name].append(np.random.random())  # noqa: NPY002
                search.note("task", 1.0, "")

        together.run(work, lambda _: None)
        return found

    alone = drawn(("a",))["a"]
    assert drawn(("a", "b")) == {"a": alone, "b": alone}


def test_a_search_that_fails_is_told_once_the_others_have_ended(turns: ModuleType) -> None:
    searches = [turns.Searching(name, 0) for name in ("fails", "goes on")]
    together = turns.Turns(searches)

    def work(search: Any) -> None:
        for _ in range(3):
            together.next_round(search)
            search.note("task", 1.0, "")
            if search.name == "fails":
                raise ValueError("no such program")

    with pytest.raises(ValueError, match="no such program"):
        together.run(work, lambda _: None)
    assert len(searches[1].measured) == 3


def entry(tasks: list[int], us: list[float | None], network: float = 0.002) -> dict[str, Any]:
    clock = [float(i + 1) for i in range(len(us))]
    return {"task": tasks, "us": us, "clock": clock, "network": network, "baseline": 0.004}


def test_a_network_counts_once_all_of_its_tasks_have_a_program(whole: ModuleType) -> None:
    found = entry([0, 0, 1, 1], [3.0, 1.0, None, 2.0])
    weights = [2, 1]
    assert whole.when(found, weights, 8e-6) == 4.0
    assert whole.when(found, weights, 4e-6) == 4.0
    assert whole.when(found, weights, 3.9e-6) is None


def test_the_baseline_against_itself_is_one_everywhere(whole: ModuleType) -> None:
    same = entry([0, 1, 1], [3.0, 5.0, 2.0], network=0.004)
    sooner = entry([0, 1], [3.0, 2.0])
    searches = dict.fromkeys(whole.CONTENDERS, same) | {"ours": sooner}
    lines = whole.rows([{"weights": [1, 1], "searches": searches}])
    assert f"| `{whole.BASELINE}` | 3 | 4.00 | 1 of 1 | 1.00x | 1.00 | 1.00 |" in lines
    assert "| `ours` | 2 | 2.00 | 1 of 1 | 1.50x | 1.00 | 0.50 |" in lines
