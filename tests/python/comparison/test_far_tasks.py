"""Which tasks resemble none that a model learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_comparison import settings

from tlp_tvm.comparison import compare
from tlp_tvm.comparison.compare_settings import contender
from tlp_tvm.comparison.far_tasks import far_tasks
from tlp_tvm.dataset.reading.manifest import Manifest, TaskEntry
from tlp_tvm.errors import ComparisonError
from tlp_tvm.planned_task import PlannedTask


class Planned(PlannedTask):
    workload_key = property(lambda self: self.task[0])  # type: ignore[assignment]
    desc = property(lambda self: self.task[1])  # type: ignore[assignment]
    flop = 1.0


def entry(key: str, description: str, split: str = "train") -> TaskEntry:
    return TaskEntry(key, split, {"net": 1}, {}, 0, None, description)


def dataset(folder: Path, *tasks: TaskEntry) -> Path:
    folder.mkdir()
    Manifest((), {}, tasks, ()).write(folder)
    return folder


def test_the_same_graph_at_other_sizes_is_left_out(tmp_path: Path) -> None:
    learned = dataset(
        tmp_path / "learned",
        entry('["a", [1, 64], [64, 32]]', "vm_mod_fused_nn_dense"),
        entry('["b", [1, 8, 8, 16]]', "vm_mod_fused_nn_relu_3"),
        entry('["t", [9, 9]]', "vm_mod_fused_mean", split="test"),
    )
    planned: list[Any] = [
        Planned(('["a", [7, 64], [64, 32]]', "vm_mod_fused_nn_dense_4")),
        Planned(('["c", [1, 4, 4, 16]]', "vm_mod_fused_nn_relu")),
        Planned(('["t", [9, 9]]', "vm_mod_fused_mean")),
        Planned(('["d", [1, 4, 4, 24]]', "vm_mod_fused_nn_relu")),
    ]

    far, digest = far_tasks(planned, learned)

    assert far == planned[2:]
    assert len(digest) == 64


def test_no_far_task_is_said(tmp_path: Path) -> None:
    learned = dataset(tmp_path / "learned", entry('["a", [1]]', "x"))

    with pytest.raises(
        ComparisonError, match="tasks that none of the 1 training tasks of .* found none among 1;"
    ):
        far_tasks([Planned(('["a", [2]]', "x"))], learned)


def test_a_dataset_without_training_tasks_is_refused(tmp_path: Path) -> None:
    judging = dataset(tmp_path / "judging", entry('["a", [1]]', "x", split="test"))

    with pytest.raises(ComparisonError, match="expected a dataset with training tasks, found none"):
        far_tasks([], judging)


def test_a_comparison_says_what_its_tasks_are_far_from(tmp_path: Path) -> None:
    learned = dataset(tmp_path / "learned", entry('["no such graph", [1]]', "x"))
    other = dataset(tmp_path / "other", entry('["another graph", [1]]', "x"))
    asked: dict[str, Any] = {"contenders": (contender("random", 2, 32),), "trials": 2}

    found = compare(settings(tmp_path / "out", far=learned, **asked))

    assert found.content["far_from"] == far_tasks([Planned(('["a", [2]]', "y"))], learned)[1]
    for change in (other, None):
        with pytest.raises(ComparisonError, match="expected a comparison with far_from"):
            compare(settings(tmp_path / "out", far=change, **asked))
