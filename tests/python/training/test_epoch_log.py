"""The files with the numbers of epochs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from programs import LAYOUT
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.training.epoch_log import TABLE
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
