"""Of a network's tasks, heavy ones are chosen among more programs than light ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tlp_tvm.metaschedule.search import zero_shot
from tlp_tvm.metaschedule.search.zero_shot import LIGHT_S, choose_programs, parts_of


@dataclass
class Task:
    """As much of a task as says what it may take."""

    workload_key: str
    seconds: float
    weight: int = 1
    module: Any = None

    @property
    def task(self) -> Any:
        return SimpleNamespace(weight=self.weight)


@pytest.fixture(autouse=True)
def guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zero_shot, "guessed", lambda task: task.seconds)
    monkeypatch.setattr(zero_shot, "block_names", lambda _: [])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Tasks that a program was chosen of, and which part of the programs they got."""
    found: list[tuple[str, int]] = []

    def choose(task: Any, _: Any, __: int, ___: int, part: int) -> str:
        found.append((task.workload_key, part))
        return json.dumps([[], [part]])

    monkeypatch.setattr(zero_shot, "choose_program", choose)
    return found


def chosen(tasks: list[Any], folder: Path) -> dict[str, str]:
    return choose_programs(tasks, None, folder, seed=0, threads=1, on_task=lambda _: None)


def test_parts_follow_from_shares_of_the_network_and_from_seconds() -> None:
    seconds = [0.9, 0.02, 0.005, 0.0199, 0.005, 0.0049, 0.004]
    tasks = [Task(str(i), each, 4 if i == 2 else 1) for i, each in enumerate(seconds)]
    assert 0.95 < sum(task.seconds * task.weight for task in tasks) < 1
    assert parts_of(tasks) == [1, 1, 1, 1, 2, 2, 4]
    assert parts_of([Task("a", LIGHT_S * 0.9), Task("b", LIGHT_S)]) == [4, 1]
    assert parts_of([Task("a", 0.0)]) == [4]
    assert parts_of([]) == []


def test_what_was_chosen_among_more_programs_serves_where_fewer_would_do(
    tmp_path: Path, asked: list[tuple[str, int]]
) -> None:
    heavy, light = Task("a", 1.0), Task("a", 0.001)
    among_few = chosen([light, Task("b", 1.0)], tmp_path)
    assert asked == [("a", 4), ("b", 1)]

    among_all = chosen([heavy], tmp_path)
    assert asked[2:] == [("a", 1)]
    assert among_all["a"] != among_few["a"]

    assert chosen([light, Task("b", 1.0)], tmp_path) == {**among_few, **among_all}
    assert len(asked) == 3


def test_a_task_without_a_program_is_not_asked_again(
    tmp_path: Path, asked: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    none_valid = zero_shot.choose_program
    monkeypatch.setattr(zero_shot, "choose_program", lambda *given: none_valid(*given) and "")
    assert chosen([Task("a", 1.0)], tmp_path) == chosen([Task("a", 1.0)], tmp_path) == {}
    assert asked == [("a", 1)]
