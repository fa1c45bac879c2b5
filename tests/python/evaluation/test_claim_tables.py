"""A claim's table and picture, made from the lines of the table behind it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from places import benchmark

BEHIND = """\
| platform | ranked by | tasks | published top-1 | published top-5 | mean top-1 | mean top-5 |
|---|---|---|---|---|---|---|
| zen4 | random | 5 all | 0.100 | 0.200 | 0.300 | 0.400 |
| zen4 | random | 2 near | 0.110 | 0.210 | 0.310 | 0.410 |
| zen4 | random | 3 far | 0.120 | 0.220 | 0.320 | 0.420 |
| zen4 | trees | 5 all | 0.5 ± 0.01 (0.4-0.6) | 0.6 | 0.7 (0.65-0.75) | 0.8 |
| zen4 | trees | 5 far | 0.52 ± 0.01 (0.4-0.6) | 0.62 | 0.72 | 0.82 |""".splitlines()

PLAIN = """\
| platform | model | published top-1 | published top-5 | mean top-1 | mean top-5 |
|---|---|---|---|---|---|
| v100 | tlp | 0.1 | 0.2 | 0.3 | 0.4 |""".splitlines()


@pytest.fixture
def claim_tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("claim_tables", monkeypatch)


def test_a_claim_has_a_row_a_model_with_near_and_far_side_by_side(claim_tables: ModuleType) -> None:
    assert (
        claim_tables.claim_table(BEHIND)
        == """\
| platform | ranked by | tasks | published top-1 | near | far | mean top-1 | near | far |
|---|---|---|---|---|---|---|---|---|
| zen4 | random | 5 (2 near, 3 far) | 0.100 | 0.110 | 0.120 | 0.300 | 0.310 | 0.320 |
| zen4 | trees | 5 (5 far) | 0.5 ± 0.01 (0.4-0.6) |  | 0.52 ± 0.01 (0.4-0.6) | 0.7 (0.65-0.75) |  | 0.72 |\
""".splitlines()
    )


def test_where_nobody_can_tell_what_is_near_there_are_all_tasks(claim_tables: ModuleType) -> None:
    assert claim_tables.claim_table(PLAIN)[0] == "| platform | model | published top-1 | mean top-1 |"
    assert claim_tables.claim_table(PLAIN)[2:] == ["| v100 | tlp | 0.1 | 0.3 |"]


def test_the_picture_shows_every_row_of_every_table(
    claim_tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_tables, "PAGES", tmp_path)
    shown: list[list[str]] = []
    axes = pytest.importorskip("matplotlib.axes").Axes
    monkeypatch.setattr(axes, "set_yticks", lambda _panel, _places, labels, **_how: shown.append(labels))

    lines = claim_tables.claim([BEHIND, PLAIN], tmp_path / "a.png", "words")

    assert lines[:2] == ["![words](a.png)", ""]
    assert shown == [["platform: random", "platform: trees", "platform: v100: tlp"]]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_cell_that_is_no_figure_is_named(claim_tables: ModuleType, tmp_path: Path) -> None:
    wrong = [line.replace("0.100", "fast") for line in BEHIND[:3]]

    with pytest.raises(
        ValueError, match="cell: expected a figure, with spread and interval or without, found"
    ):
        claim_tables.draw_claim([wrong], tmp_path / "a.png")
