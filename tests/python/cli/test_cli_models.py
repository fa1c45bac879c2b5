"""`train`, `evaluate` and `export`, as a user calls them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from commands import refused, run, succeed
from measured import part_of_epyc
from programs import TARGETS, write_dataset
from tlp_tvm.metrics.ranked_groups import FAR, NEAR
from tlp_tvm.model.checkpoint import load_model


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("dataset"), ("train",) * 5 + ("test",) * 2)


@pytest.fixture(scope="module")
def model(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("models") / "mtl"
    succeed("train", dataset, "--out", out, "--epochs", 2, "--hidden", 16)
    return out


def test_train_writes_a_model_with_a_head_a_platform(model: Path, dataset: Path) -> None:
    loaded = load_model(model)
    assert loaded.platforms == ("alpha", "beta")
    assert loaded.targets == tuple(TARGETS.values())
    card = loaded.card
    assert card["training"]["hold_out"] == 5
    assert card["data"]["tasks"] == 4
    assert card["data"]["validation_tasks"] == 1
    assert {row["network"] for row in card["metrics"]["test"]} == {
        "test-net",
        "all networks",
        "mean over tasks",
    }
    assert all(row["random"]["1"]["mean"] > 0 for rows in card["metrics"].values() for row in rows)
    assert sorted(p.name for p in model.iterdir()) == [
        "CARD.md",
        "config.json",
        "metrics.csv",
        "metrics.jsonl",
        "model.safetensors",
    ]
    assert len((model / "metrics.jsonl").read_text().splitlines()) == 2


def test_the_card_says_what_the_config_says(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "judged"
    succeed(
        "train", dataset, "--out", out, "--epochs", 1, "--hidden", 8, "--hold-out", 0, "--cross-validate", 2
    )
    card, text = load_model(out).card, (out / "CARD.md").read_text()
    found = card["metrics"]["cross_validation"]
    assert (found["folds"], found["seeds"]) == (2, [0, 1, 2])
    assert 0 < found["top1"]["low"] <= found["top1"]["mean"] <= found["top1"]["high"] <= 1
    assert 0 < found["random"]["top1"] < found["random"]["top5"] <= 1
    rows = card["metrics"]["test"]
    numbers = [found["top1"]["mean"], found["random"]["top5"], rows[0]["top"]["1"], rows[-1]["spearman"]]
    for number in numbers:
        assert f"{number:.3f}" in text
    for word in (
        card["data"]["digest"],
        card["layout_digest"],
        *TARGETS.values(),
        "# Model `judged`",
        "MTL-TLP",
    ):
        assert word in text


def test_train_as_json(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "one"
    printed = succeed(
        "train", dataset, "--out", out, "--epochs", 1, "--hidden", 8, "--platform", "beta", "--loss", "mse",
        "--layout", "paper-cpu", "--seed", 4, "--hold-out", 0, "--json",
    )  # fmt: skip
    result = json.loads(printed)
    assert result["model"] == str(out)
    assert result["recipe"]["loss"] == "mse"
    assert list(result["metrics"]) == ["test"]
    loaded = load_model(out)
    assert (loaded.platforms, loaded.layout.name, loaded.card["seed"]) == (("beta",), "paper-cpu", 4)


def test_train_shows_how_far_it_is(dataset: Path, tmp_path: Path) -> None:
    result = run("train", dataset, "--out", tmp_path / "m", "--epochs", 2, "--hidden", 8, "--batch", 18)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stderr.split())
    assert text.startswith("72 programs of 4 tasks, 1 held out on alpha, beta epoch 1, loss ")
    assert re.search(
        r"epoch 2, loss .* training .*100% [\d,]+ programs/s 0:00:00 epoch 2, loss \d\.\d+, top-1 ", text
    )


def test_train_says_a_line_an_epoch_and_a_training_where_there_is_no_terminal(
    dataset: Path, tmp_path: Path
) -> None:
    how = ["--epochs", 3, "--hidden", 8, "--hold-out", 0, "--cross-validate", 2]
    lines = run("train", dataset, "--out", tmp_path / "m", *how).stderr.splitlines()
    assert [line for line in lines if re.fullmatch(r"epoch \d, loss \d\.\d{3}", line)] == lines[1:4]
    assert [line for line in lines if line.startswith("cross-validation: ")][-1].endswith(" of 6 trainings")


def test_train_faithfully(dataset: Path, tmp_path: Path) -> None:
    succeed(
        "train",
        dataset,
        "--out",
        tmp_path / "f",
        "--epochs",
        1,
        "--hidden",
        16,
        "--faithful",
        "--layout",
        "paper-cpu",
    )
    settings = load_model(tmp_path / "f").config.settings
    assert (settings.faithful, settings.positions, settings.raw_numbers) == (True, False, True)


def test_a_finished_model_is_not_overwritten(model: Path, dataset: Path) -> None:
    before = (model / "model.safetensors").read_bytes()
    assert refused("train", dataset, "--out", model) == (
        f"error: {model}: expected a new folder, or that of an interrupted run, found a finished model; "
        "choose another folder, or delete that one"
    )
    assert (model / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--loss", "hinge"], "expected one of mse, lambdarank, pairwise, found hinge"),
        (["--precision", "half"], "expected one of auto, float32, bfloat16, found half"),
        (["--hidden", "20"], "expected a multiple of 8, found 20"),
    ],
)
def test_wrong_usage(dataset: Path, tmp_path: Path, options: list[str], sentence: str) -> None:
    result = run("train", dataset, "--out", tmp_path / "x", *options)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not (tmp_path / "x").exists()


def test_a_failed_train_leaves_nothing(tmp_path: Path) -> None:
    assert refused("train", tmp_path / "none", "--out", tmp_path / "x") == (
        f"error: {tmp_path / 'none'}: expected a dataset folder or a record file, found nothing"
    )
    damaged = tmp_path / "log.json"
    damaged.write_text('{"i": [["k", "llvm"]]}\n')
    assert refused("train", damaged, "--out", tmp_path / "x").startswith(f"error: {damaged}:1: ")
    assert not (tmp_path / "x").exists()


def rows_of(*arguments: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(succeed("evaluate", *arguments, "--json"))["rows"]
    return rows


def test_evaluate_prints_the_random_pick_too(model: Path, dataset: Path) -> None:
    printed = succeed("evaluate", model, dataset)
    for word in ("alpha", "beta", "test-net", "mean over tasks", "top-1", "random top-5", "Spearman"):
        assert word in printed
    assert "train-net" not in printed


def test_evaluate_agrees_with_the_card(model: Path, dataset: Path) -> None:
    rows = [row for row in rows_of(model, dataset) if not row["network"].endswith((NEAR, FAR))]
    assert rows == load_model(model).card["metrics"]["test"]


def test_evaluate_other_splits_ks_and_platforms(model: Path, dataset: Path) -> None:
    rows = rows_of(model, dataset, "--split", "train", "--platform", "beta", "--k", 3, "--k", 1)
    assert {row["platform"] for row in rows} == {"beta"}
    assert {row["network"] for row in rows} == {"train-net", "all networks", "mean over tasks"}
    assert [list(row["top"]) for row in rows] == [["1", "3"]] * 3
    assert refused("evaluate", model, dataset, "--split", "dev") == (
        'error: dataset: expected tasks of the split "dev", found test, train'
    )


def test_evaluate_plain_logs_by_their_target(model: Path, dataset: Path) -> None:
    files = sorted((dataset / "beta" / "test").iterdir())
    whole = [
        row for row in rows_of(model, dataset, "--platform", "beta") if row["network"] == "mean over tasks"
    ]
    by_target = [row for row in rows_of(model, *files) if row["network"] == "mean over tasks"]
    assert by_target[0]["platform"] == TARGETS["beta"]
    assert by_target[0]["top"] == whole[0]["top"]
    by_name = rows_of(model, *files, "--platform", "alpha")
    assert by_name[-1]["platform"] == "alpha"


def test_export_and_evaluate_the_file(model: Path, dataset: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.pt"
    assert succeed("export", model, "-o", file).startswith(f"{file}: ")
    assert rows_of(file, dataset) == rows_of(model, dataset)
    assert json.loads(succeed("export", model, "-o", file, "--json"))["difference"] <= 1e-6
    assert refused("export", tmp_path / "none", "-o", file).startswith(
        f"error: {tmp_path / 'none'}: expected a shipped model ("
    )


@pytest.mark.parametrize("command", ["train", "evaluate", "export"])
def test_help_has_an_example(command: str) -> None:
    assert f"Example: tlp-tvm {command} " in succeed(command, "--help")


def test_trees_join_a_trained_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = part_of_epyc(
        tmp_path / "epyc", ["bert_small-128__863af811c027"], ["bert_tiny-128__b77812d9dfb1"]
    )
    out = tmp_path / "model"
    succeed("train", source, "--out", out, "--epochs", 1, "--hidden", 8, "--hold-out", 0)
    before = (out / "model.safetensors").read_bytes(), (out / "CARD.md").read_text()
    assert load_model(out).trees is None

    said = succeed("train", source, "--trees", "--out", out)
    assert said.startswith("300 trees for ")
    trees = load_model(out).trees
    assert trees is not None
    assert trees.platforms == load_model(out).platforms
    assert (out / "model.safetensors").read_bytes() == before[0]
    card = (out / "CARD.md").read_text()
    assert card.startswith(before[1].rstrip())
    answer = json.loads(succeed("train", source, "--trees", "--out", out, "--json"))
    assert answer == {"model": str(out), "trees": 300, "platforms": list(trees.platforms)}
    assert (out / "CARD.md").read_text() == card  # the part on trees is replaced


def test_trees_learn_from_data_without_a_test_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source, out = part_of_epyc(tmp_path / "epyc", ["bert_small-128__863af811c027"], []), tmp_path / "model"
    for empty in source.glob("*/test"):
        empty.rmdir()
    succeed("train", source, "--out", out, "--epochs", 1, "--hidden", 8, "--hold-out", 0)

    assert succeed("train", source, "--trees", "--out", out).startswith("300 trees for ")


def test_options_that_do_not_go_with_trees_are_refused(dataset: Path, tmp_path: Path) -> None:
    asked = ("train", dataset, "--out", tmp_path / "model")
    alone = refused(*asked, "--networks", tmp_path, code=2)
    assert "expected --trees, whose features are rebuilt from these files, found none; leave it out" in alone
    both = refused(*asked, "--trees", "--add-to", "x86", code=2)
    assert "expected trees for the model at --out, found --add-to x86; call train twice" in both
