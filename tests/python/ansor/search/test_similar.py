"""Measured programs of a task with other shapes, made to fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states, written_steps
from tlp_tvm.ansor.search.similar import fitted_lengths, similar_programs

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


def dense(rows: int, columns: int, depth: int) -> Any:
    tvm = load_tvm()
    auto_scheduler = tvm.auto_scheduler
    a, b = tvm.te.placeholder((rows, depth), name="a"), tvm.te.placeholder((columns, depth), name="b")
    tensors = [a, b, tvm.topi.nn.relu(tvm.topi.nn.dense(a, b))]
    dag = auto_scheduler.ComputeDAG(tensors)
    key = auto_scheduler.workload_registry.register_workload_tensors(dag.workload_key(), tensors)
    return auto_scheduler.SearchTask(compute_dag=dag, workload_key=key, target=TARGET)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve programs of a dense layer, each slower than the one before."""
    auto_scheduler = load_tvm().auto_scheduler
    task, path = dense(128, 256, 64), tmp_path_factory.mktemp("similar") / "log.json"
    states = sample_states(task, 12)[:12]
    inputs = [auto_scheduler.MeasureInput(task, state) for state in states]
    results = [auto_scheduler.MeasureResult([1e-3 * (i + 1)], 0, "", 1.0, 1) for i in range(12)]
    auto_scheduler.save_records(str(path), inputs, results)
    return path


@pytest.mark.parametrize(
    ("lengths", "extent", "fitted"),
    [
        ([4, 2, 8], 512, [4, 2, 8]),
        ([4, 2, 8], 100, [5, 2, 10]),
        ([1, 1, 16], 7, [1, 1, 7]),
        ([2, 16], 13, [1, 13]),
        ([8], 1, [1]),
    ],
)
def test_lengths_move_to_divisors_near_by(lengths: list[int], extent: int, fitted: list[int]) -> None:
    assert fitted_lengths(lengths, extent) == fitted


def test_the_programs_of_a_like_task_fit_and_compile(log: Path) -> None:
    tvm = load_tvm()
    task = dense(96, 100, 48)

    found = similar_programs([log], [task, operator_task("softmax", TARGET)], each=4, seed=0)

    assert list(found) == [str(task.workload_key)]
    states = found[str(task.workload_key)]
    assert 1 <= len(states) <= 4
    original = json.loads(log.read_text().splitlines()[0])["i"][1][1]
    first = written_steps(task, states[0])
    assert [step[0] for step in first] == [step[0] for step in original]
    for step in first:
        if step[0] == "SP":
            product = 1
            for length in step[4]:
                product *= length
            assert step[3] % product == 0
    schedule, tensors = task.compute_dag.apply_steps_from_state(states[0])
    tvm.build(schedule, tensors, TARGET)


def test_a_task_that_has_records_of_its_own_needs_none(log: Path) -> None:
    assert similar_programs([log], [dense(128, 256, 64)], each=4, seed=0) == {}


def test_other_targets_and_forms_are_passed_over(log: Path) -> None:
    text = log.read_text().replace("-mcpu=core-avx2", "-mcpu=nehalem")
    other = log.with_name("other.json")
    other.write_text(text)
    assert similar_programs([other], [dense(96, 100, 48)], each=4, seed=0) == {}
    assert similar_programs([log], [operator_task("batch_matmul", TARGET)], each=4, seed=0) == {}
