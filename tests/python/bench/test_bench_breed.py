"""The breeding benchmark, once and small: it checks what was bred, prints ratios, and can fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from programs import tiny_config
from tlp_tvm import _core
from tlp_tvm.ansor.benching import breed
from tlp_tvm.ansor.breeding.replay import StateReplayer
from tlp_tvm.bench.breed_result import BreedResult
from tlp_tvm.cli.app import app
from tlp_tvm.cli.parts.bench_tables import breed_table
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import save_checkpoint


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    config, network = tiny_config(FeatureLayout.preset("ansor"))
    save_checkpoint(tmp_path / "tiny", config, network.state_dict())
    monkeypatch.setattr(breed, "POPULATION", 16)
    return tmp_path / "tiny"


def test_every_stage_is_timed_for_both_targets(model: Path) -> None:
    command = [
        "bench",
        "breed",
        "--task",
        "softmax",
        "--programs",
        "200",
        "--rounds",
        "1",
        "--model",
        str(model),
    ]
    result = CliRunner().invoke(app, [*command, "--json"])

    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.strip().splitlines()[-1])
    assert [entry["target"] for entry in figures["breed"]] == [breed.CPU_TARGET, breed.CUDA_TARGET]
    for entry in figures["breed"]:
        assert entry["bred"] > entry["bred_embedded"] > 0
        assert entry["ratio"] == entry["bred_scored"] / entry["tvm"] > 0
        assert entry["of_network"] == entry["bred_scored"] / entry["network"] > 0
        assert 0 < entry["tvm_scoring"] < 1


def test_what_tvm_does_not_replay_is_not_timed(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: StateReplayer, herd: _core.Herd, i: int) -> None:
        self.counts.refuse("no loop 9")

    monkeypatch.setattr(StateReplayer, "program", refuse)
    with pytest.raises(
        AssertionError, match=r"expected TVM to replay what was bred, found .*'no loop 9': 32"
    ):
        breed.bench_breed("conv2d", breed.CPU_TARGET, count=200, model=str(model), rounds=1)


def test_the_breeding_table_has_the_ratios() -> None:
    rates = {
        "bred": 4e6,
        "embedded": 1e6,
        "bred_embedded": 8e5,
        "scored": 2e4,
        "network": 2.5e4,
        "bred_scored": 2e4,
    }
    entry = BreedResult("conv2d", "llvm", "epyc", 10000, 2, 3, **rates, tvm=500.0, tvm_scoring=0.1)
    console = Console(record=True, width=100)
    console.print(breed_table([entry]))
    text = console.export_text()
    assert "40.0x" in text
    assert "80%" in text
