"""`tlp-tvm dataset`, as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from commands import refused, succeed
from programs import write_dataset
from tlp_tvm.dataset import open_dataset


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("source"), ("train",) * 5 + ("test",) * 2)


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "dataset"
    text = succeed("dataset", "build", source, "--out", out)
    assert "126 programs, 252 measurements on 2 platforms, 7 tasks" in text
    assert "test: 2 tasks, 36 programs" in text
    return out


def test_a_model_is_trained_and_evaluated_on_it(built: Path, source: Path, tmp_path: Path) -> None:
    """And comes out the same as on the records themselves."""
    for name, dataset in (("a", built), ("b", source)):
        succeed("train", dataset, "--out", tmp_path / name, "--epochs", 1, "--hidden", 16)
    cards = [json.loads((tmp_path / name / "config.json").read_text()) for name in ("a", "b")]
    assert cards[0]["metrics"] == cards[1]["metrics"]
    assert open_dataset(built).digest in json.dumps(cards[0])
    rows = [
        json.loads(succeed("evaluate", tmp_path / "a", dataset, "--json"))["rows"]
        for dataset in (built, source)
    ]
    assert rows[0] == rows[1]
    assert {row["platform"] for row in rows[0]} == {"alpha", "beta"}


def test_splits_are_chosen(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--split", "task", "--test-share", 0.3, "--validation-share", 0.2, "--seed", 4]
    succeed("dataset", "build", source, "--out", out, *options)
    manifest = open_dataset(out).manifest
    assert {task.split for task in manifest.tasks} == {"train", "validation", "test"}
    assert manifest.split == {
        "rule": "task",
        "test": 0.3,
        "validation": 0.2,
        "seed": 4,
        "near_duplicates": "together",
    }
    options = ["--split", "family", "--test", "train-net", "--validation-share", 0]
    succeed("dataset", "build", source, "--out", out, "--replace", *options)
    assert open_dataset(out).manifest.split["test"] == ["train-net"]
    assert [task.split for task in open_dataset(out).manifest.tasks].count("test") == 5


def test_options_that_do_not_fit_are_refused(source: Path, built: Path, tmp_path: Path) -> None:
    build = ["dataset", "build", source, "--out", tmp_path / "out"]
    assert "--test: expected --split family with it" in refused(*build, "--test", "vgg", code=2)
    assert "expected --split family or task with it" in refused(*build, "--near-duplicates", "apart", code=2)
    shares = ["--test-share", 0.6, "--validation-share", 0.5]
    assert "expected below 1 with --validation-share, found 1" in refused(
        *build, "--split", "task", *shares, code=2
    )
    assert "--test lenet: expected a network" in refused(*build, "--split", "family", "--test", "lenet")
    message = refused("dataset", "build", source, "--out", built)
    assert "expected a new folder, found a built dataset; choose another folder, or replace it" in message
    assert "found nothing" in refused("dataset", "build", tmp_path / "none", "--out", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_bad_lines_are_passed_over_when_asked(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source")
    (source / "alpha" / "train" / "bad.json").write_text("no record\n")
    assert "bad.json:1: " in refused("dataset", "build", source, "--out", tmp_path / "out")
    text = succeed("dataset", "build", source, "--out", tmp_path / "out", "--skip-bad-lines")
    assert "skipped: 1 lines (" in text


def test_a_tenset_tree_is_imported(source: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(source / "alpha", tree / "measure_records" / "alpha")
    text = succeed("dataset", "import-tenset", tree, "--out", tmp_path / "out")
    assert "126 programs, 126 measurements on 1 platforms, 7 tasks" in text
    message = refused("dataset", "import-tenset", tree, "--out", tmp_path / "other", "--trust-pickle")
    assert "expected *.task.pkl of networks, found none" in message


def test_statistics_as_table_json_and_page(built: Path, tmp_path: Path) -> None:
    text = succeed("dataset", "stats", built, "--tasks", 3)
    for word in ("alpha", "beta", "train-net", "paper-cpu", "ansor", "steps, across tasks", "Tasks (3 of 7)"):
        assert word in text
    page = tmp_path / "stats.html"
    told = json.loads(succeed("dataset", "stats", built, "--json", "--html", page, "--layout", "paper-gpu"))
    assert told["programs"] == 126
    assert [layout["layout"] for layout in told["layouts"]] == ["paper-gpu"]
    assert page.read_text().startswith("<!doctype html>")
    assert "found no manifest.json" in refused("dataset", "stats", tmp_path)


def test_damage_is_found(built: Path, tmp_path: Path) -> None:
    assert "126 programs, all checksums match" in succeed("dataset", "verify", built)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in built.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    shard = copy / "programs-00000.arrow"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    assert "it was changed or damaged; build the dataset again" in refused("dataset", "verify", copy)


@pytest.mark.parametrize("command", ["build", "import-tenset", "stats", "verify"])
def test_help_has_an_example(command: str) -> None:
    assert f"Example: tlp-tvm dataset {command} " in succeed("dataset", command, "--help")
