"""The training benchmark, once and small: it checks its answers, reckons TenSet's epochs, and can fail."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from programs import tiny_config, write_dataset
from tlp_tvm.bench import train
from tlp_tvm.cli.app import app
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.reading.streaming import StreamedDataset
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import save_checkpoint


@pytest.fixture
def built(tmp_path: Path) -> Path:
    build_dataset([write_dataset(tmp_path / "records")], tmp_path / "built")
    return tmp_path / "built"


def test_json_has_rates_and_the_reckoning(built: Path) -> None:
    small = ["--programs", "40", "--batch", "18", "--rounds", "1", "--device", "cpu"]
    result = CliRunner().invoke(app, ["bench", "train", str(built), *small, "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.strip().splitlines()[-1])
    assert figures["machine"]["cores"]
    found = figures["train"]
    assert (found["model"], found["layout"], found["precision"]) == ("recipe", "ansor", "float32")
    assert (found["streamed"], found["programs"], found["records_a_program"]) == (True, 54, 2.0)
    assert min(found["training"], found["batches"], found["network"]) > 0
    assert found["epoch_seconds"] == {
        "8.6M": 8_600_000 / found["training"],
        "52M": 52_000_000 / found["training"],
    }


@pytest.mark.parametrize("model", ["paper", "trained"])
def test_models_by_name_on_records(model: str, built: Path, tmp_path: Path) -> None:
    layout = FeatureLayout.preset("ansor").with_shape(length=6)
    if model == "trained":
        config, network = tiny_config(layout)
        save_checkpoint(tmp_path / "trained", config, network.state_dict())
        model = str(tmp_path / "trained")
    records = tmp_path / "records"
    found = train.bench_train(
        records, model=model, platforms=["beta"], programs=1, device="cpu", rounds=1, layout=None
    )
    assert not found.streamed
    assert (found.platforms, found.records_a_program) == (1, 1.0)
    assert found.parameters > 1000


def test_an_embedding_that_depends_on_the_batch_stops_it(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = StreamedDataset.features

    def wrong(self: StreamedDataset, programs: object = slice(None)) -> object:
        found = right(self, programs)  # type: ignore[arg-type]
        return found if len(found) == 1 else np.roll(found, 1, axis=0)

    monkeypatch.setattr(StreamedDataset, "features", wrong)
    with pytest.raises(AssertionError, match="expected a program's embedding not to depend on its batch"):
        train.bench_train(built, device="cpu", rounds=1)


def test_the_table_has_the_reckoning() -> None:
    from rich.console import Console

    from tlp_tvm.cli.parts.bench_tables import train_table

    entry = train.TrainResult(
        "d", "paper", 10**6, "ansor", 1, "cuda", "bfloat16", True, 8192, 256, 1.0, 1e5, 9e5, 2e5, 1234
    )
    console = Console(record=True, width=140)
    console.print(train_table(entry))
    text = console.export_text()
    assert "100,000" in text
    assert "86 s" in text
    assert "520 s" in text
    assert "peak 1,234 MiB" in text
