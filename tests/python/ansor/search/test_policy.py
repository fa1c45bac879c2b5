"""Choosing what to measure and which task is next: the rules, and both in a real tuning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scorers import LinearScorer
from tlp_tvm.adapting.choosing import choose_batch
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.search import policy as policy_module
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.policy import ChoosingPolicy
from tlp_tvm.errors import TuningError
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_settings import TuneSettings

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


def test_where_nothing_is_unknown_the_best_are_chosen() -> None:
    expected = np.array([0.1, 0.9, 0.5, 0.7], np.float32)
    assert choose_batch(expected, np.zeros((4, 4)), 3, 0.1) == [1, 3, 2]
    assert sorted(choose_batch(expected, np.eye(4), 9, 0.1)) == [0, 1, 2, 3]
    assert choose_batch(np.empty(0, np.float32), np.empty((0, 0)), 3, 0.1) == []


def test_of_programs_that_are_alike_one_is_enough() -> None:
    alike = np.ones((2, 2))
    covariance = np.block([[alike, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])
    expected = np.array([1.0, 0.99, 0.5], np.float32)
    before = covariance.copy()
    assert choose_batch(expected, covariance, 2, 0.1) == [0, 2]
    np.testing.assert_array_equal(covariance, before)


class Told(TuneObserver):
    def __init__(self) -> None:
        self.programs = 0

    def measured(self, trials: int, estimate: float, failures: Mapping[str, int]) -> None:
        self.programs = trials


def tuned(out: Path, trials: int, **options: Any) -> TuneSettings:
    return TuneSettings(
        "mlp",
        out,
        model=LinearScorer(),
        target=TARGET,
        trials=trials,
        population=32,
        turns=1,
        measure=MeasureSettings(timing=Timing(repeat=2, min_repeat_ms=1), threads=0, hopeless=1.5),
        **options,
    )


def test_a_tuning_that_chooses_itself_measures_every_task_and_nothing_twice(tmp_path: Path) -> None:
    how: dict[str, Any] = {"choose": "diverse", "measures_per_round": 5}
    first = tune_network(tuned(tmp_path, 22, **how))
    assert all(task.trials >= 1 for task in first.tasks)
    told = Told()

    more = tune_network(tuned(tmp_path, 26, choose="diverse", measures_per_round=2), told)

    assert (told.programs, more.trials, more.reused) == (26, 26, 22)
    batch = read_records(more.log)
    programs = set(zip(batch.task_ids.tolist(), batch.sequence_hashes.tolist(), strict=True))
    assert len(programs) == 26
    repeats = {len(costs) for costs in batch.costs} if hasattr(batch, "costs") else {1, 2}
    assert repeats <= {1, 2}
    assert more.end_to_end is not None
    assert more.end_to_end.difference < 1e-4


def test_what_was_found_and_not_measured_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    task = operator_task("softmax", TARGET)
    model = TLPCostModel(LinearScorer(), online=False)
    policy = ChoosingPolicy(task, model, None, population=64, seed=1, diverse=False)
    monkeypatch.setattr(policy_module, "measure", lambda task, states, options: ([], []))
    refused: list[int] = []
    program_of = policy.breeder.replayer.program

    def program(herd: Any, i: int) -> Any:
        if not refused:
            refused.append(i)  # as if TVM did not replay the first
            return None
        return program_of(herd, i)

    monkeypatch.setattr(policy.breeder.replayer, "program", program)
    found = policy._found(32)
    monkeypatch.setattr(policy, "_found", lambda count: found)
    monkeypatch.setattr(policy, "_note", lambda programs, latencies: None)
    policy.continue_search_one_round(4)

    assert len(policy._pool) == len(found[0]) - 5
    assert found[0].hashes[refused[0]] not in policy._pool.hashes
    monkeypatch.undo()
    assert found[0].hashes[refused[0]] not in policy._found(10_000)[0].hashes  # nor is it bred again


def test_a_task_of_which_tvm_draws_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tlp_tvm.ansor.breeding.task_stock.drawn_states", lambda *_: [])
    task = operator_task("softmax", TARGET)
    model = TLPCostModel(LinearScorer(), online=True)
    policy = ChoosingPolicy(task, model, None, population=64, seed=1, diverse=True)

    assert policy.continue_search_one_round(4) == ([], [])
    assert policy.best == math.inf


def test_of_a_program_that_was_measured_twice_the_later_latency_counts() -> None:
    task = operator_task("softmax", TARGET)
    policy = ChoosingPolicy(
        task, TLPCostModel(LinearScorer(), online=False), None, population=8, seed=1, diverse=False
    )
    herd, _ = policy._found(3)

    policy._note(herd.take(np.array([0, 1, 0])), [3.0, 2.0, 1.0])
    assert dict(zip(policy._programs.hashes, policy._latencies, strict=True)) == dict(
        zip(herd.hashes[:2], [1.0, 2.0], strict=True)
    )
    policy._note(herd.take(np.array([1])), [9.0])
    assert policy.best == 1.0
    assert sorted(policy._latencies) == [1.0, 9.0]


def test_what_is_no_choice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TuningError, match='`choose`: expected one of diverse, top, found "worst"'):
        tuned(tmp_path, 8, choose="worst")
