"""The datasets that trainings are tested on."""

from __future__ import annotations

from pathlib import Path

import pytest

from programs import LAYOUT, write_dataset
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.reading import shards
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from trainings import SPLITS


@pytest.fixture
def data(tmp_path: Path) -> MeasuredDataset:
    """108 programs of 6 tasks, in memory."""
    return load_measured(write_dataset(tmp_path / "data"), LAYOUT)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """198 programs in blocks of 10, as a built dataset."""
    monkeypatch.setattr(shards, "ROWS_A_BATCH", 10)
    build_dataset([write_dataset(tmp_path / "records", SPLITS)], tmp_path / "built")
    return tmp_path / "built"
