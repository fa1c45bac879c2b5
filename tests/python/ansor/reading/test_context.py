"""The context of a task: the same from a state's task and from its record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tlp_tvm
from tlp_tvm.ansor.context import CONTEXT_COLUMNS, context_of
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.reading.records import TaskKey, read_records
from tlp_tvm.ansor.search.sampling import sample_states


def _columns(key: TaskKey, flops: float | None = None) -> dict[str, float]:
    return dict(zip(CONTEXT_COLUMNS, context_of(key, flops).tolist(), strict=True))


@pytest.mark.parametrize("target", ["llvm -mcpu=skylake-avx512 -num-cores=2", "cuda -arch=sm_70"])
def test_state_and_record_agree(target: str, tmp_path: Path) -> None:
    auto_scheduler = tlp_tvm.load_tvm().auto_scheduler
    task = operator_task("conv2d", target)
    state = sample_states(task, 1, seed=1)[0]
    log = tmp_path / "log.json"
    auto_scheduler.save_records(
        str(log),
        [auto_scheduler.MeasureInput(task, state)],
        [auto_scheduler.MeasureResult([1.0], 0, "", 1, 1)],
    )
    key = read_records(log).tasks[0]
    assert np.array_equal(context_of(key, task.compute_dag.flop_ct), context_of(task))


def test_columns_mean_what_they_say() -> None:
    columns = _columns(
        TaskKey(
            '["hash", [1, 7], [255, 3]]', "llvm -mcpu=core-avx2 -num-cores=4", (4, 32, 64, 0, 0, 0, 0, 0)
        ),
        flops=2.0**32 - 1,
    )
    assert columns["tensor0.dim-1"] == pytest.approx(3 / 8)  # log2(1 + 7) / 8
    assert columns["tensor1.dim-2"] == pytest.approx(1.0)
    assert columns["tensor2.dim-1"] == 0
    assert columns["flops"] == pytest.approx(4.0)
    assert columns["flops.known"] == 1
    assert columns["target.llvm"] == 1
    assert columns["target.vector_bits"] == 0.5
    assert columns["hardware.known"] == 1


def test_arguments_of_registered_functions() -> None:
    columns = _columns(TaskKey('["conv2d", [1, 3, 3, 8], 2, "float16", [[4, 4]], true]', "cuda"))
    assert columns["type.float16"] == 1
    assert columns["scalar0"] == pytest.approx(np.log2(3) / 8)
    assert columns["tensor1.dim-1"] == pytest.approx(np.log2(5) / 8)
    assert columns["target.cuda"] == 1
    assert columns["hardware.known"] == 0
    assert columns["flops.known"] == 0


@pytest.mark.parametrize("key", ["5f1a2b", '"name"', "[]", "{}", '["hash", {"a": 1}]'])
def test_keys_that_say_nothing_give_zeros(key: str) -> None:
    columns = _columns(TaskKey(key, "llvm"))
    assert all(value == 0 for name, value in columns.items() if name.startswith(("tensor", "scalar", "type")))
