"""What a layout cuts, counted over records of known shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tlp_tvm.ansor.reading.records import iter_records
from tlp_tvm.dataset.statistics.layout_fit import LayoutStatistics, layout_statistics
from tlp_tvm.layout import FeatureLayout


def _log(path: Path, programs: list[list[object]]) -> Path:
    lines = [{"i": [["key", "llvm"], [[], steps]], "r": [[1.0], 0, 1, 1]} for steps in programs]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_counts_and_proposal(tmp_path: Path) -> None:
    short = [["CI", 1]] * 3
    long = [["CI", 1]] * 57 + [["RE", 0, list(range(20))]]
    log = _log(tmp_path / "log.json", [short, short, long])
    layout = FeatureLayout.preset("paper-cpu")
    statistics = layout_statistics(iter_records(log), layout)
    assert statistics.lengths == {3: 2, 58: 1}
    assert statistics.widths == {1: 2, 21: 1}
    assert statistics.cut_share == pytest.approx(1 / 3)
    assert statistics.report.cut_rows == 58 - 25
    assert statistics.proposal() == (64, 32)  # 58 rows; 11 + 21 columns


def test_the_default_layout_keeps_the_tail(tmp_path: Path) -> None:
    """Annotations and pragmas stand at the end of a sequence: the default drops from the middle."""
    layout = FeatureLayout.preset("ansor")
    steps: list[object] = [["CI", i] for i in range(100)]
    batch = next(
        iter_records(_log(tmp_path / "log.json", [[*steps, ["PR", 7, 0, "auto_unroll_max_step$64"]]]))
    )
    last = batch.encode(layout)[0, -1]
    assert last[layout.kinds.index("PR")] == 1


def test_nothing_counted_is_no_error() -> None:
    statistics = LayoutStatistics(FeatureLayout.preset("ansor"))
    assert statistics.cut_share == 0
    assert statistics.proposal()[0] >= 1
