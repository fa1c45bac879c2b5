"""`tlp-tvm evaluate` with several models, baselines, seeds and programs seen, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import refused, run, succeed
from measured import AVX2, part_of_epyc

QUICK = ("--seen", "0,8")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return part_of_epyc(tmp_path_factory.mktemp("epyc"))


def compared(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(succeed("evaluate", *arguments, "--json"))
    return found


@pytest.fixture(scope="module")
def built(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "data"
    succeed("dataset", "build", dataset, "--out", out)
    return out


def test_a_comparison_as_json(dataset: Path, built: Path) -> None:
    options = ("--baselines", "random,xgboost-sequence", "--seeds", 2, "--seed", 3, *QUICK)
    found = compared("epyc", dataset, *options)
    assert (found["models"], found["split"], found["seeds"]) == (["epyc"], "test", [3, 4])
    assert found["not_computable"] == {}
    assert list(found["notes"]) == ["xgboost-sequence"]
    rows = found["results"]
    keys = [(row["platform"], row["network"], row["seen"], row["ranker"]) for row in rows]
    parts = [f"{name}{end}" for name in ("all networks", "mean over tasks") for end in ("", ", far")]
    networks = ["bert_base-128", "bert_tiny-128", *parts]
    assert keys == [
        (AVX2, network, seen, ranker)
        for network in networks
        for seen in (0, 8)
        for ranker in ("random", "epyc", "xgboost-sequence")
    ]
    for row in rows:
        assert list(row["top"]) == ["1", "5", "10", "20"]
        for value in (*row["top"].values(), row["pairwise_accuracy"]):
            assert 0 < value["low"] <= value["mean"] <= value["high"] <= 1
            assert value["deviation"] >= 0
    assert all(
        row["top"]["1"]["deviation"] == 0 for row in rows if (row["ranker"], row["seen"]) == ("epyc", 0)
    )
    from_built = compared("epyc", built, *options)
    assert from_built.pop("dataset_digest") != found.pop("dataset_digest")
    assert from_built == found


def test_one_model_alone_keeps_its_numbers_in_a_comparison(dataset: Path) -> None:
    alone = compared("epyc", dataset)
    assert alone["model"] == "epyc"
    beside = compared("epyc", dataset, "--k", 5, "--k", 1, "--baselines", "random")["results"]
    for row in alone["rows"]:
        of = {r["ranker"]: r for r in beside if r["network"] == row["network"]}
        for k in ("1", "5"):
            assert of["epyc"]["top"][k]["mean"] == row["top"][k]
            assert of["random"]["top"][k]["mean"] == row["random"][k]["mean"]
        assert of["epyc"]["kendall"]["mean"] == row["kendall"]


def test_a_comparison_for_people(dataset: Path, tmp_path: Path) -> None:
    picture = tmp_path / "rankers.png"
    printed = succeed(
        "evaluate", "epyc", "epyc", dataset, "--baselines", "xgboost-sequence", "--png", picture, *QUICK
    )
    for word in ("mean over tasks", "top-20", "Kendall", "pairs", "random", "xgboost-sequence", "seen", AVX2):
        assert word in printed
    assert "xgboost-sequence: objective, chosen on training tasks held out: r" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_baselines_need_no_model(dataset: Path) -> None:
    rows = compared(dataset, "--baselines", "random", "--k", 3)["results"]
    assert {row["ranker"] for row in rows} == {"random"}
    assert {row["tasks"] for row in rows} == {1, 2}


def test_what_cannot_be_computed_is_said(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tlp_tvm.ansor.reading import store_rows

    monkeypatch.setattr(store_rows, "rebuilt_tasks", lambda tasks, targets, tell: [])
    options = ("--baselines", "tenset-mlp,xgboost-features", "--epochs", 1, "--cache", tmp_path)
    found = compared(dataset, *options)
    assert {row["ranker"] for row in found["results"]} == {"random"}
    for name in ("tenset-mlp", "xgboost-features"):
        reasons = set(found["not_computable"][name].values())
        assert len(found["not_computable"][name]) == 7
        assert "none of its networks has it when built here: bert_tiny-128" in reasons
        assert found["notes"][name][0].startswith("5 training tasks without features were not learned from: ")
    printed = succeed("evaluate", dataset, *options)
    assert printed.count("not computable") > 8
    assert "tenset-mlp: not computable: [" in printed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--baselines", "gnn"], "--baselines: expected some of random, xgboost-sequence, "),
        (
            ["--seen", "0,24"],
            "--seen 24: expected more than 24 measured programs of every test task, found 24",
        ),
        (
            ["--split", "train", "--baselines", "xgboost-sequence"],
            'dataset: expected tasks of the split "train" to fit baselines',
        ),
        (["--split", "dev"], 'dataset: expected tasks of the split "dev", found test, train'),
        (["--platform", "abacus"], 'expected one of the platforms epyc-avx2-1c, found "abacus"'),
    ],
)
def test_refusals(dataset: Path, arguments: list[str], sentence: str) -> None:
    assert sentence in refused("evaluate", "epyc", dataset, *arguments)


def test_what_is_seen_are_numbers(dataset: Path) -> None:
    result = run("evaluate", "epyc", dataset, "--seen", "0,many")
    assert result.exit_code == 2
    assert "expected numbers such as 0,16,64, found 0,many" in result.stderr


def test_names_without_a_dataset_are_refused(tmp_path: Path) -> None:
    assert refused("evaluate", "epyc", tmp_path / "none").startswith(
        f"error: {tmp_path / 'none'}: expected a dataset folder or a record file, found nothing"
    )


def test_help_has_an_example() -> None:
    assert "Example: tlp-tvm evaluate epyc datasets/epyc --baselines" in succeed("evaluate", "--help")
