"""The files with the numbers of epochs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from programs import LAYOUT
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.errors import TrainingError
from tlp_tvm.training.epoch_log import TABLE, board_of, need_tensorboard
from tlp_tvm.training.runs.train_run import Recipe, train_model
from trainings import SHORT, run


def test_the_table_has_the_lines_and_the_times(built: Path, tmp_path: Path) -> None:
    run(load_measured(built, LAYOUT), tmp_path / "run", SHORT)
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    with (tmp_path / "run" / TABLE).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3]
    for row, entry in zip(rows, lines, strict=True):
        assert float(row["loss"]) == entry["loss"]
        assert float(row["validation_top1"]) == entry["validation"]["top1"]
        assert float(row["programs_per_second"]) == pytest.approx(144 / float(row["seconds"]))


def test_tensorboard_reads_the_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the optional package tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for _ in range(2):  # a run that goes on tells its epochs again
        tell = board_of(tmp_path)
        for epoch in (1, 2):
            tell({"epoch": epoch, "loss": 0.5 / epoch, "validation": {"top1": 0.75}})
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert [(event.step, event.value) for event in board.Scalars("loss")] == [(1, 0.5), (2, 0.25)]
    assert [event.value for event in board.Scalars("validation_top1")] == [0.75, 0.75]


def test_no_tensorboard_is_said_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TrainingError) as error:
        need_tensorboard()
    assert str(error.value) == (
        "--tensorboard: expected the package tensorboard, found none; install it (pip install tensorboard) "
        "or leave the option out: metrics.csv has the same numbers"
    )
    with pytest.raises(TrainingError):
        train_model(tmp_path / "none", tmp_path / "out", Recipe(LAYOUT, tensorboard=True))
    assert not (tmp_path / "out").exists()
