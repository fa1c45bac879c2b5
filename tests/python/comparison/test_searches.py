"""docs/search.md, the page behind it and the README say what the kept comparisons say."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from places import ROOT, benchmark
from tlp_tvm.comparison.summary import read_comparison


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("searches", monkeypatch)


def test_the_tables_are_those_of_the_kept_comparisons(searches: ModuleType) -> None:
    every, page, readme = (
        (ROOT / name).read_text() for name in ("docs/search-more.md", "docs/search.md", "README.md")
    )
    found = searches.kept()

    assert "ansor" in found
    for name, comparison in found.items():
        assert searches.section(name, comparison) in every
    assert searches.summary(found) in page
    assert searches.summary(found) in readme


def test_only_the_long_comparison_has_few_tasks(searches: ModuleType) -> None:
    for name, about in searches.COMPARISONS.items():
        assert (about.tasks, about.seeds) == ((2, 1) if name == "ansor-long" else (6, 2))


def test_a_kept_comparison_is_whole(searches: ModuleType) -> None:
    for name, comparison in searches.kept().items():
        tasks = {group["task"] for group in comparison.content["groups"]}
        seeds = {group["seed"] for group in comparison.content["groups"]}

        assert len(comparison.content["groups"]) == len(tasks) * len(seeds)
        assert len(tasks) >= searches.COMPARISONS[name].tasks
        assert len(seeds) >= searches.COMPARISONS[name].seeds
        for network in searches.COMPARISONS[name].networks:
            assert any(Path(network).stem in group["networks"] for group in comparison.content["groups"])
        for run in comparison.runs():
            assert np.isfinite(run.best[-1])


def test_what_is_kept_reads_as_what_was_measured(
    searches: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = searches.kept()["ansor"]
    monkeypatch.setattr(searches, "KEPT", tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "comparison.json").write_text(json.dumps(comparison.content))

    searches.keep("ansor", tmp_path / "run")

    assert read_comparison(tmp_path / "ansor").content == comparison.content
