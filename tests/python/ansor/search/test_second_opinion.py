"""What trees say of lowered programs decides what is chosen before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from scorers import LinearScorer
from tlp_tvm.adapting.program_source import ModelPrior
from tlp_tvm.ansor.breeding.replay import StateReplayer
from tlp_tvm.ansor.breeding.task_stock import TaskStock
from tlp_tvm.ansor.networks.planning import RelayTask
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.reading.states import steps
from tlp_tvm.ansor.search import programs as sources
from tlp_tvm.ansor.search import zero_shot
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.programs import StateSource
from tlp_tvm.ansor.search.zero_shot import choose_program
from tlp_tvm.breeding.evolution import Found
from tlp_tvm.breeding.herd_scores import embedded
from tlp_tvm.breeding.second_opinion import SecondOpinion
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.trees.store_trees import STORE_WIDTH, StoreTrees

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"
LIKED = 3


class Thinker(LinearScorer):
    """With one tree, which likes a store whose first feature is large."""

    def __init__(self) -> None:
        super().__init__()
        self.trees = StoreTrees(
            ("avx2",),
            np.zeros((1, 1), np.int16),
            np.full((1, 1), 0.5, np.float32),
            np.array([[0.0, 1000.0]], np.float32),
        )


@pytest.fixture
def liked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Steps of the last programs of each that were asked about at once, which the trees like; the first have
    no stores."""
    found: list[Any] = []

    def rows_of_states(_: Any, states: Sequence[Any]) -> tuple[Any, Any]:
        counts = np.ones(len(states), np.int32)
        counts[:1] = 0
        rows = np.zeros((int(counts.sum()), STORE_WIDTH), np.float32)
        rows[-LIKED:, 0] = 1
        found.extend(steps(states)[-LIKED:])
        return rows, counts

    for module in (zero_shot, sources):
        monkeypatch.setattr(module, "rows_of_states", rows_of_states)
    return found


def test_a_model_without_trees_or_for_another_platform_has_none() -> None:
    rows_of = lambda programs: (np.zeros((len(programs), STORE_WIDTH)), np.ones(len(programs)))  # noqa: E731
    assert SecondOpinion.by(LinearScorer(), "avx2", rows_of) is None
    assert SecondOpinion.by(Thinker(), "avx512", rows_of) is None
    assert SecondOpinion.by(Thinker(), "avx2", rows_of) is not None


def test_without_measuring_the_best_of_both_is_chosen(
    liked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zero_shot, "JUDGED", 24)
    task = operator_task("softmax", TARGET)
    state = choose_program(task, TLPCostModel(Thinker()), 32, seed=1)
    assert steps([state])[0] in liked


class Taster:
    """Trees whose opinion is in the first feature."""

    def speeds(self, rows: Any, counts: Any, tiles: Any, platform: str) -> Any:
        return rows[:, 0].astype(np.float64)


@pytest.mark.parametrize("seed", range(4))
def test_of_many_favourites_those_are_lowered_that_the_trees_may_like(seed: int) -> None:
    sample = TaskStock(operator_task("dense", TARGET), seed, 256).sample
    layout = FeatureLayout.preset("ansor")
    rows = embedded(sample, layout).reshape(len(sample), -1)
    rows = (rows - rows.mean(0)) / np.maximum(rows.std(0), 1e-3)
    axes = np.linalg.svd(rows, full_matrices=False)[2][:3]
    taste = 0.01 * rows @ axes.T @ np.random.default_rng(seed).normal(size=3)
    asked: list[int] = []

    def rows_of(places: Sequence[int]) -> tuple[Any, Any]:
        asked.extend(places)
        return taste[list(places), None], np.ones(len(places), np.int32)

    opinion = SecondOpinion(Taster(), "avx2", rows_of, layout)  # type: ignore[arg-type]
    found = Found(sample, np.zeros(len(sample), np.float32), len(sample))
    best = opinion.best(found, range(len(sample)), lambda places: [(i, i) for i in places], 48)

    assert len(set(asked)) == len(asked) == len(best) == 48
    assert [i for i, _ in best] == sorted(asked, key=lambda i: -taste[i])
    assert taste[best[0][0]] >= np.sort(taste)[-2]


def test_all_are_lowered_at_once_where_there_are_no_more() -> None:
    sample = TaskStock(operator_task("dense", TARGET), 1).sample
    asked: list[int] = []

    def rows_of(places: Sequence[int]) -> tuple[Any, Any]:
        asked.append(len(places))
        return np.zeros((len(places), 1)), np.ones(len(places), np.int32)

    opinion = SecondOpinion(Taster(), "avx2", rows_of, FeatureLayout.preset("ansor"))  # type: ignore[arg-type]
    found = Found(sample, np.zeros(len(sample), np.float32), len(sample))
    opinion.best(found, range(20), lambda places: [(i, i) for i in places if i != 3], 24)

    assert asked == [19]  # TVM refuses one


def test_tvm_infers_the_bounds_of_the_chosen_program_alone(
    liked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zero_shot, "JUDGED", 24)
    replayed: list[int] = []
    program = StateReplayer.program

    def counted(self: StateReplayer, herd: Any, i: int) -> Any:
        replayed.append(i)
        return program(self, herd, i)

    monkeypatch.setattr(StateReplayer, "program", counted)
    choose_program(operator_task("softmax", TARGET), TLPCostModel(Thinker()), 32, seed=1)
    assert len(replayed) == 1


def test_a_collection_measures_the_best_of_both_first(
    liked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tlp_tvm.ansor.search.programs.JUDGED", 24)
    task = operator_task("softmax", TARGET)
    source = StateSource(RelayTask(task, {}), 0, ModelPrior(Thinker(), "avx2"), population=64)  # type: ignore[arg-type]
    programs = source.take(LIKED, evolved=True)
    assert {str(steps([each.input.state])[0]) for each in programs} <= set(map(str, liked))
    assert len(programs) == LIKED
