"""docs/results.md, the page behind it and the README say what the kept results say."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from places import ROOT, benchmark
from tlp_tvm.model.checkpoint import load_model


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("results", monkeypatch)


def test_the_tables_are_those_of_the_kept_results(
    results: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Path] = []
    claim_tables = benchmark("claim_tables", monkeypatch)
    monkeypatch.setattr(claim_tables, "draw_claim", lambda _tables, path: drawn.append(path))
    monkeypatch.setattr(results, "claim", claim_tables.claim)
    kept = [name for name in results.PARTS if (results.KEPT / f"{name}.json").exists()]

    assert "judged" in kept
    for name in kept:
        said = json.loads((results.KEPT / f"{name}.json").read_text())
        text = (ROOT / "docs" / "results-more.md").read_text()
        assert results.tables(name, said) in text, f"{name}: run results.py --tables"
        assert said["command"] == results.PARTS[name].line
        if results.PARTS[name].is_claimed:
            assert results.claimed(name, said) in (ROOT / "docs" / "results.md").read_text()
    assert [path.exists() for path in drawn] == [True]
    judged = json.loads((results.KEPT / "judged.json").read_text())
    assert results.readme_table(judged) in (ROOT / "README.md").read_text(), "run results.py --tables"


def test_the_table_of_uniqueness_is_that_of_the_kept_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    uniqueness = benchmark("uniqueness", monkeypatch)
    kept = json.loads(uniqueness.KEPT.read_text())

    assert "build/dataset-x86" in kept
    assert "\n".join(uniqueness.lines(kept)) in uniqueness.PAGE.read_text(), "run uniqueness.py --tables"


def test_figures_of_code_that_has_changed_since_are_flagged(
    results: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = results.made_of()
    assert results.provenance(made) == f"Commit {made['commit']}."

    monkeypatch.setattr(results, "rooms_digest", lambda _rooms: "another")

    assert results.provenance(made) == f"Commit {made['commit']}; the code that makes it has changed since."

    of_a_model = {**made, "weights": {"x86": "another", "epyc": load_model("epyc").card["weights"]["sha256"]}}
    assert results.provenance(of_a_model) == (
        f"Commit {made['commit']}; the code that makes it and the file of `x86` have changed since."
    )


def test_the_table_of_ansors_weights_is_that_of_the_kept_trainings(results: ModuleType) -> None:
    runs = json.loads((results.KEPT / "ansor-pretraining.json").read_text())["runs"]
    text = (ROOT / "docs" / "results-more.md").read_text()

    rows = {tuple(key.rsplit(", ", 2)[:2]) for key in runs}
    assert len(rows) == 6
    for start, share in rows:
        found = np.array([runs[f"{start}, {share}, {seed}"] for seed in range(3)])
        cells = [f"{m:.3f} ± {d:.3f}" for m, d in zip(found.mean(0), found.std(0, ddof=1), strict=True)]
        assert f"| {share} | {start} | {' | '.join(cells)} |\n" in text


def test_the_table_of_pretraining_is_that_of_the_kept_trainings(results: ModuleType) -> None:
    kept = json.loads((results.KEPT / "labels-pretraining.json").read_text())

    assert "\n".join(results.labels_table(kept)) in (ROOT / "docs" / "results-more.md").read_text()


def test_marks_that_are_missing_are_named(results: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("no marks")

    with pytest.raises(SystemExit, match="expected one pair of marks <!-- tables: begin -->, found 0"):
        results.put(tmp_path / "page.md", "tables", "text")


def test_text_goes_between_the_marks_alone(results: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- t: begin -->\nold\n<!-- t: end -->\nafter\n")

    results.put(page, "t", "new \\1\n")

    assert page.read_text() == "before\n<!-- t: begin -->\nnew \\1\n<!-- t: end -->\nafter\n"
