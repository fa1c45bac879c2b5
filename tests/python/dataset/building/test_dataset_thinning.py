"""Of many programs of a task some are kept, the same on all platforms; those that judge are all kept."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from programs import LAYOUT, write_dataset
from tlp_tvm.cli.dataset import app
from tlp_tvm.dataset.building import build as building
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset

WHOLE = 18
"""Programs of a made-up task."""


def programs(dataset: MeasuredDataset) -> list[set[bytes]]:
    """Of each task, what its programs are."""
    return [
        {features.tobytes() for features in dataset.features(dataset.programs_of(task))}
        for task in range(len(dataset.tasks))
    ]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("thin") / "source")


def test_training_tasks_are_thinned_and_test_tasks_are_whole(source: Path, tmp_path: Path) -> None:
    whole = load_measured(source, LAYOUT)
    manifest = build_dataset([source], tmp_path / "thin", programs_per_task=5)
    thin = load_measured(tmp_path / "thin", LAYOUT)

    assert [task.programs for task in manifest.tasks] == [WHOLE, WHOLE, 5, 5, 5, 5]
    assert [platform.measurements for platform in manifest.platforms] == [4 * 5 + 2 * WHOLE] * 2
    assert np.isfinite(thin.latencies).all()  # what is kept is kept with every label
    for few, all_of_them, task in zip(programs(thin), programs(whole), thin.tasks, strict=True):
        assert few <= all_of_them
        assert (few == all_of_them) == (task.split == "test")
    assert "at most 5 programs of a task and platform were kept, drawn with seed 0" in manifest.notes[-1]


def test_each_platform_has_its_share_where_they_measured_other_programs(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source", ("train",))
    for turn, platform in enumerate(("alpha", "beta")):
        file = source / platform / "train" / "task0.json.gz"
        lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
        file.write_bytes(gzip.compress(b"".join(lines[turn::2])))
    manifest = build_dataset([source], tmp_path / "thin", programs_per_task=7)
    assert [platform.measurements for platform in manifest.platforms] == [7, 7]
    assert manifest.programs == 14


def test_the_draw_goes_by_the_seed_alone(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_dataset([source], tmp_path / "first", programs_per_task=5)
    other = build_dataset([source], tmp_path / "other", programs_per_task=5, seed=1)
    monkeypatch.setattr(building, "PARTITION_BYTES", 100)
    again = build_dataset([source], tmp_path / "again", programs_per_task=5)
    drawn = [programs(load_measured(tmp_path / name, LAYOUT)) for name in ("first", "again", "other")]
    assert len(again.shards) > len(first.shards)
    assert drawn[0] == drawn[1] != drawn[2]
    assert first.programs == other.programs == 4 * 5 + 2 * WHOLE


def test_the_command_line_thins(source: Path, tmp_path: Path) -> None:
    arguments = ["build", str(source), "--out", str(tmp_path / "thin"), "--programs-per-task", "3"]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    assert "48 programs" in told.output
    assert "at most 3 programs of a task" in told.output
