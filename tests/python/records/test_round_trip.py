"""Logs that we write are TVM's own: its reader takes them, and its replay gives the same loop nests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tlp_tvm
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.reading.records import programs_of, read_records, write_records
from tlp_tvm.ansor.search.sampling import sample_states

TARGETS = {"conv2d": "llvm -mcpu=core-avx2 -num-cores=2", "softmax": "llvm", "dense": "cuda -arch=sm_70"}


def _log_of(task: Any, states: list[Any], path: Path) -> None:
    auto_scheduler = tlp_tvm.ansor.load_tvm().auto_scheduler
    inputs = [auto_scheduler.MeasureInput(task, state) for state in states]
    results = [
        auto_scheduler.MeasureResult([0.5 + i, 1e-9], 0, "", 1.25, 1700000000 + i) for i in range(len(states))
    ]
    auto_scheduler.save_records(str(path), inputs, results)


@pytest.mark.parametrize("name", TARGETS)
def test_tvm_reads_and_replays_what_we_write(name: str, tmp_path: Path) -> None:
    tvm = tlp_tvm.ansor.load_tvm()
    task = operator_task(name, TARGETS[name])
    states = sample_states(task, 40, seed=5)
    theirs, ours = tmp_path / "theirs.json", tmp_path / "ours.json"
    _log_of(task, states, theirs)

    assert write_records(ours, read_records(theirs)) == len(states)
    assert read_records(ours).sequence_hashes.tolist() == read_records(theirs).sequence_hashes.tolist()

    inputs, results = tvm.auto_scheduler.RecordReader(str(ours)).read_lines()
    assert len(inputs) == len(states)
    for state, measure_input, result in zip(states, inputs, results, strict=True):
        assert str(measure_input.task.workload_key) == task.workload_key
        replayed = task.compute_dag.infer_bound_from_state(measure_input.state)
        expected = task.compute_dag.infer_bound_from_state(state)
        assert str(replayed) == str(expected)  # the loop nest, printed
        assert result.error_no == 0
        assert float(result.costs[1]) == 1e-9


def test_steps_survive_being_written(tmp_path: Path) -> None:
    task = operator_task("conv2d", "llvm")
    states = sample_states(task, 60, seed=6)
    _log_of(task, states, tmp_path / "log.json")
    once = read_records(tmp_path / "log.json")
    write_records(tmp_path / "again.json", once)
    again = read_records(tmp_path / "again.json")
    assert [again.steps(i) for i in range(len(again))] == [tlp_tvm.ansor.steps_of(state) for state in states]
    write_records(tmp_path / "third.json", again)
    assert (tmp_path / "third.json").read_bytes() == (tmp_path / "again.json").read_bytes()


def test_steps_alone_have_records_too(tmp_path: Path) -> None:
    """A dataset keeps programs without their tasks and results; TVM rebuilds them from records."""
    _log_of(task := operator_task("dense", "llvm"), sample_states(task, 20, seed=7), tmp_path / "log.json")
    measured = read_records(tmp_path / "log.json")
    texts = measured.step_texts(np.arange(len(measured)))

    alone = programs_of("".join(f"{text}\n" for text in texts).encode())

    assert alone.step_texts(np.arange(len(alone))) == texts
    expected = [f'{{"i": [["[]", ""], [[], {text}]], "r": [[0], 0, 0, 0], "v": "v0.2"}}\n' for text in texts]
    assert [alone.line(i) for i in range(len(alone))] == expected
    write_records(tmp_path / "again.json", alone)
    again = read_records(tmp_path / "again.json")
    assert again.sequence_hashes.tolist() == measured.sequence_hashes.tolist()


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    class Full:
        """A batch whose second record cannot be written."""

        blocks: list[Any]

        def __init__(self) -> None:
            self.blocks = [self]

        def __len__(self) -> int:
            return 2

        def line(self, i: int) -> str:
            if i:
                raise OSError("no space left on device")
            return "{}\n"

    with pytest.raises(OSError, match="no space left"):
        write_records(tmp_path / "log.json", iter([Full()]))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
