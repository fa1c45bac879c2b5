"""`tlp-tvm evaluate --few-shot`, as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands import refused, succeed
from logs import DATASETS
from places import ROOT
from programs import write_dataset
from tlp_tvm.training import start


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("few"))


def test_the_command(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "FEW_STEPS", 2)  # it is the command that is tried, not how well it trains
    arguments = [
        source, "--few-shot", "beta", "--labels", "0,25%", "--recipes", "local,mtl", "--seeds", 2,
        "--choose", "grouped,diverse", "--epochs", 1, "--cache", tmp_path / "cache", "--device", "cpu",
    ]  # fmt: skip
    printed = succeed("evaluate", *arguments, "--png", tmp_path / "few.png")
    for word in ("18 (25.0%)", "diverse", "grouped", "random", "top-1", "test-net", "local needs labels"):
        assert word in printed
    assert (tmp_path / "few.png").read_bytes().startswith(b"\x89PNG")
    result = json.loads(succeed("evaluate", *arguments, "--json"))
    assert (result["target"], result["seeds"], result["split"]) == ("beta", [0, 1], "test")
    keys = {(row["recipe"], row["choose"], row["labels"]) for row in result["results"]}
    mtl = {("mtl", choose, labels) for choose in ("grouped", "diverse") for labels in (0, 18)}
    assert keys == mtl | {("random", "", 0), ("local", "grouped", 18), ("local", "diverse", 18)}


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (
            ["--few-shot", "gamma"],
            1,
            "--few-shot gamma: expected one of several platforms of the dataset, found alpha",
        ),
        (
            ["--few-shot", "beta", "--platform", "beta"],
            1,
            "expected one of several platforms of the dataset, found",
        ),
        (
            ["--few-shot", "beta", "--recipes", "magic"],
            1,
            "--recipes: expected some of local, mtl, blend,",
        ),
        (
            ["--few-shot", "beta", "--choose", "best"],
            2,
            "expected some of random, grouped, diverse, found best",
        ),
        (["--few-shot", "beta", "--baselines", "random"], 2, "expected only a dataset"),
        (["--few-shot", "beta", "--split", "train"], 1, "expected tasks of the split"),
    ],
)
def test_what_cannot_be_is_refused(
    source: Path, tmp_path: Path, options: list[str], code: int, sentence: str
) -> None:
    cache = tmp_path / "cache"
    assert sentence in refused("evaluate", source, *options, "--cache", cache, code=code)
    assert not cache.exists()


def test_the_benchmark_refuses_an_unknown_platform_in_a_sentence() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "few_labels.py"), "gamma", "--folds", "1"]
    done = subprocess.run(
        [*command, "--dataset", str(DATASETS / "epyc")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "few_labels.py: error: `few_shot` gamma: expected one of several platforms of the dataset, found "
        "epyc-avx2-1c, epyc-avx512-2c, epyc-sse42-1c"
    )
