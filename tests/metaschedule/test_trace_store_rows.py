"""TVM's per-store features of MetaSchedule's programs, and trees that judge what is chosen by them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scorers import LinearScorer
from tlp_tvm.adapting.program_source import ModelPrior
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.graph.fusing import WEIGHTS, without_weights
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import target_of
from tlp_tvm.metaschedule.networks.planning import TraceTask, plan_tasks
from tlp_tvm.metaschedule.reading.store_rows import rebuilt_modules, rows_of, rows_of_schedules
from tlp_tvm.metaschedule.reading.traces import texts_of
from tlp_tvm.metaschedule.reading.workload_key import workload_key
from tlp_tvm.metaschedule.search import programs as sources
from tlp_tvm.metaschedule.search import zero_shot
from tlp_tvm.metaschedule.search.programs import TraceSource
from tlp_tvm.metaschedule.search.tvms_sample import LAYOUT, drawn, ready_search
from tlp_tvm.model.scoring import MEAN
from tlp_tvm.model.trees.store_trees import STORE_WIDTH, StoreTrees

PROGRAMS = 6


class Thinker(LinearScorer):
    """With one tree, which likes a store whose first feature is large."""

    def __init__(self) -> None:
        super().__init__(FeatureLayout.preset(LAYOUT))
        self.trees = StoreTrees(
            ("elsewhere",),
            np.zeros((1, 1), np.int16),
            np.full((1, 1), 0.5, np.float32),
            np.array([[0.0, 1000.0]], np.float32),
        )


@pytest.fixture(scope="module")
def task() -> TraceTask:
    load_tvm()
    tasks = plan_tasks(["dqn"], target_of("llvm -num-cores=2", here=False), lambda _: None)
    return next(each for each in tasks if WEIGHTS in (each.module["main"].attrs or {}))


@pytest.fixture(scope="module")
def programs(task: TraceTask) -> list[Any]:
    return drawn(ready_search(task, 1, PROGRAMS), PROGRAMS)


def test_rows_are_those_of_tvm_and_the_same_every_time(task: TraceTask, programs: list[Any]) -> None:
    from tvm.s_tir import meta_schedule as ms

    rows, counts = rows_of_schedules(task.module, task.target, programs)
    context = ms.TuneContext(mod=task.module, target=task.target, num_threads=1)
    candidates = [ms.MeasureCandidate(each, []) for each in programs]
    theirs = ms.feature_extractor.PerStoreFeature().extract_from(context, candidates)
    assert rows.shape == (counts.sum(), STORE_WIDTH)
    assert counts.tolist() == [len(each.numpy()) for each in theirs]
    assert np.isclose(rows.sum(), sum(each.numpy().sum() for each in theirs), rtol=1e-4)
    again, _ = rows_of_schedules(task.module, task.target, programs)
    np.testing.assert_array_equal(again, rows)


def test_recorded_programs_have_the_rows_of_live_ones(task: TraceTask, programs: list[Any]) -> None:
    texts = texts_of(programs)
    rows, counts = rows_of(task.module, task.target, [texts[0], "[[], []", *texts[1:]])
    live, of_live = rows_of_schedules(task.module, task.target, programs)
    assert counts.tolist() == [of_live[0], 0, *of_live[1:]]
    np.testing.assert_array_equal(rows, live)


def test_tasks_are_found_again_in_their_networks_by_keys_of_today_and_of_before(task: TraceTask) -> None:
    before = workload_key(without_weights(task.module))
    wanted = {task.workload_key: {"dqn": 1}, before: {"dqn": 1}, "0" * 16: {"dqn": 1, "no_network": 1}}
    found = dict(rebuilt_modules(wanted, task.target, lambda _: None))
    assert set(found) == {task.workload_key, before}
    assert all(workload_key(module) == key for key, module in found.items())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that trees were asked about last; they like the last of them."""
    found: list[str] = []

    def rows_of_programs(_: Any, __: Any, schedules: Sequence[Any]) -> tuple[Any, Any]:
        found[:] = texts_of(list(schedules))
        rows = np.zeros((len(schedules), STORE_WIDTH), np.float32)
        rows[-1, 0] = 1
        return rows, np.ones(len(schedules), np.int32)

    monkeypatch.setattr(zero_shot, "rows_of_schedules", rows_of_programs)
    for module in (zero_shot, sources):
        monkeypatch.setattr(module, "ASKED", 8)
    return found


def test_of_the_best_bred_trees_choose_and_one_seed_is_one_choice(
    task: TraceTask, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zero_shot, "POPULATION", 64)
    monkeypatch.setattr(zero_shot, "MOST_WORK", 1e9)
    prior = ModelPrior(Thinker(), MEAN)
    with_trees = zero_shot.choose_program(task, prior, 1, threads=2)
    assert 1 < len(asked) <= 8
    assert with_trees == asked[-1]
    assert zero_shot.choose_program(task, prior, 1, threads=1) == with_trees
    assert zero_shot.choose_program(task, prior.__call__, 1, threads=2) == asked[0]


def test_a_collection_measures_what_trees_like_first(task: TraceTask, asked: list[str]) -> None:
    source = TraceSource(task, 0, ModelPrior(Thinker(), MEAN), population=64)
    programs = source.take(2, evolved=True)
    assert 1 < len(asked) <= 8
    assert programs[0].input.trace == asked[-1]


@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch warns of itself
def test_tasks_of_a_file_are_found_as_it_was_split_before(tmp_path: Path) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU()).eval()
    now, before = forms_of(network, torch.randn(2, 3, 16), tmp_path, earlier=True)
    assert len(before - now) == 2, "a product, and an activation of three axes"


@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch warns of itself
def test_convolutions_of_a_file_are_found_that_are_winograds_now(tmp_path: Path) -> None:
    network = torch.nn.Conv2d(64, 64, 3, padding=1).eval()
    now, before = forms_of(network, torch.randn(1, 64, 28, 28), tmp_path, usual=True)
    assert len(before - now) == 2, "a convolution, and what brings its channels first"


def forms_of(network: torch.nn.Module, given: torch.Tensor, folder: Path, **form: bool) -> list[set[str]]:
    """The tasks of a network now, and as it was split before, all of which are found."""
    file = folder / "network.pt2"
    torch.export.save(torch.export.export(network, (given,)), file)
    target = target_of("llvm -num-cores=2", here=False)
    forms = [plan_tasks([str(file)], target, lambda _: None, **how) for how in ({}, form)]
    now, before = ({task.workload_key for task in tasks} for tasks in forms)
    wanted = {key: {str(file): 1} for key in now | before}
    assert {key for key, _ in rebuilt_modules(wanted, target, lambda _: None)} == now | before
    return [now, before]
