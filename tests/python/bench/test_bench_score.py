"""The scoring benchmark, once and small: it checks its answers, prints ratios, and can fail."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from programs import tiny_config
from tlp_tvm.ansor.benching import score
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.bench.score_result import ScoreResult
from tlp_tvm.cli.app import app
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import save_checkpoint


@pytest.fixture
def model(tmp_path: Path) -> Path:
    config, network = tiny_config(FeatureLayout.preset("ansor"))
    save_checkpoint(tmp_path / "tiny", config, network.state_dict())
    return tmp_path / "tiny"


@pytest.fixture(autouse=True)
def _few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "TRAINED_ON", 16)


def test_both_models_score_the_same_states_for_both_targets(model: Path) -> None:
    cores, threads = os.sched_getaffinity(0), torch.get_num_threads()
    small = ["--states", "12", "--cuda-states", "4", "--rounds", "1", "--torch-threads", "1"]
    command = ["bench", "score", "--task", "softmax", *small, "--model", str(model)]

    result = CliRunner().invoke(app, [*command, "--json"])

    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.strip().splitlines()[-1])
    assert figures["machine"]["cores"]
    assert [entry["target"] for entry in figures["score"]] == [score.CPU_TARGET, score.CUDA_TARGET]
    assert [entry["programs"] for entry in figures["score"]] == [12, 4]
    for entry in figures["score"]:
        assert entry["threads"] == 1
        assert entry["trees"] > 0
        assert entry["ratio"] == entry["ours"] / entry["xgb"] > 0
        assert entry["embedding"] > 0
    assert (os.sched_getaffinity(0), torch.get_num_threads()) == (cores, threads)


def test_programs_that_a_gpu_cannot_run_are_counted(model: Path) -> None:
    result = score.bench_score("conv2d", score.CUDA_TARGET, count=16, model=str(model), rounds=1)

    assert 0 < result.refused < 1
    assert 0 < result.invalid < 1


def test_a_score_that_is_no_number_stops_it(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TLPCostModel, "predict", lambda self, task, states: np.full(len(states), np.nan))
    with pytest.raises(AssertionError, match="expected our model to score each program"):
        score.bench_score("softmax", score.CPU_TARGET, count=8, model=str(model), rounds=1)


def test_the_table_has_the_ratios() -> None:
    from rich.console import Console

    from tlp_tvm.cli.parts.bench_tables import score_table

    entry = ScoreResult("conv2d", "llvm", "epyc", 2000, 2, 3, 60.0, 5e4, 9e4, 1e3, 80, 0.25, 0.25)
    console = Console(record=True, width=140)
    console.print(score_table([entry]))
    text = console.export_text()
    assert "50.0x" in text
    assert "60.0x" in text
    assert "25%" in text
    assert "2 threads each" in text
