"""The benches of MetaSchedule, once and small: they check their answers, print ratios, and can fail."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tlp_tvm.bench.extract_result import TraceExtractResult, ratio_of_all
from tlp_tvm.cli.app import app
from tlp_tvm.cli.parts.bench_tables import trace_table
from tlp_tvm.framework import framework_named
from tlp_tvm.metaschedule.benching import breed as breed_traces
from tlp_tvm.metaschedule.benching import extract as extract_traces
from tlp_tvm.metaschedule.benching import score as score_traces
from tlp_tvm.metaschedule.reading import traces
from tlp_tvm.metaschedule.search.cost_model import TLPCostModel

MODEL = framework_named("metaschedule").default_model
MS = ["--framework", "metaschedule", "--task", "softmax"]


@pytest.fixture(autouse=True)
def _few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_traces, "TRAINED_ON", 16)


def test_both_routes_are_timed_for_both_targets() -> None:
    result = CliRunner().invoke(app, ["bench", "extract", *MS, "--states", "4", "--seconds", "0", "--json"])

    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.strip().splitlines()[-1])
    assert [entry["target"] for entry in figures["extract"]] == ["llvm", "cuda"]
    for entry in figures["extract"]:
        assert entry["ratio"] == entry["every_thread"] / entry["python_route"] > 0
        assert entry["json_ratio"] == entry["every_thread"] / entry["json_route"] > 0
        assert entry["candidates"] == 4


def test_the_table_has_the_ratio_of_all() -> None:
    rates = [(8, 10, 0.1, 0.2), (16, 20, 0.5, 1)]
    results = [TraceExtractResult("conv2d", "llvm", "any", 1, 28.3, *each) for each in rates]
    assert ratio_of_all(results, "python_route") == pytest.approx((10 + 2) / (0.1 + 0.05))
    console = Console(width=80, record=True)
    console.print(trace_table(results))
    assert re.search(r"one of each +80x +40x", console.export_text())


@pytest.mark.parametrize(
    ("where", "name"), [(traces, "encode_through_json"), (extract_traces.PythonAlignedEncoder, "encode")]
)
def test_routes_that_differ_are_not_timed(where: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(where, name)
    monkeypatch.setattr(where, name, lambda *a, **k: right(*a, **k) + 1)
    with pytest.raises(AssertionError, match="the routes differ"):
        extract_traces.bench_extract_traces("softmax", "llvm", count=2, seconds=0)


def test_both_models_score_the_same_candidates() -> None:
    small = ["--states", "6", "--cuda-states", "0", "--rounds", "1", "--torch-threads", "1"]
    result = CliRunner().invoke(app, ["bench", "score", *MS, *small, "--json"])

    assert result.exit_code == 0, result.output
    [entry] = json.loads(result.stdout.strip().splitlines()[-1])["score"]
    assert entry["model"] == MODEL
    assert (entry["programs"], entry["threads"]) == (6, 1)
    assert entry["ratio"] == entry["ours"] / entry["xgb"] > 0


def test_scores_that_are_no_numbers_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TLPCostModel, "predict", lambda *_: np.full(4, np.nan))
    with pytest.raises(AssertionError, match="to score each candidate"):
        score_traces.bench_score_traces("softmax", "llvm", model=MODEL, count=4, rounds=1)


@pytest.mark.parametrize("command", ["extract", "score"])
def test_an_unknown_framework_is_refused(command: str) -> None:
    result = CliRunner().invoke(app, ["bench", command, "--framework", "other"])
    assert result.exit_code == 2


def test_every_stage_of_breeding_is_timed_for_both_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breed_traces, "POPULATION", 16)
    monkeypatch.setattr(breed_traces, "WANTED", 4)
    command = ["bench", "breed", *MS, "--programs", "100", "--rounds", "1", "--json"]
    result = CliRunner().invoke(app, command)

    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.strip().splitlines()[-1])
    assert [entry["target"].split()[0] for entry in figures["breed"]] == ["llvm", "cuda"]
    for entry in figures["breed"]:
        assert entry["bred"] > entry["bred_embedded"] > 0
        assert entry["ratio"] == entry["bred_scored"] / entry["tvm"] > 0
        assert 0 < entry["tvm_scoring"] < 1
