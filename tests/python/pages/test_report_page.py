"""Pages: their parts, those of comparisons, and the command that writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from pages import others_asked_for
from tlp_tvm.cli.app import app
from tlp_tvm.errors import ComparisonError
from tlp_tvm.pages import report_page
from tlp_tvm.pages.page import facts, figures, filled, section

TARGET = "llvm -keys=cpu -mcpu=skylake-avx512 -num-cores=2"


def write_comparison(folder: Path, **changes: Any) -> Path:
    """Three models on two tasks; each program takes a second."""
    rng = np.random.default_rng(0)
    groups = []
    for task in range(2):
        sessions = {}
        for name, gain in (("tlp:4", 0.5), ("xgb:4", 1.0), ("random:4", 2.0)):
            latencies = [0.004 * (task + 1) * (1 + gain * value) for value in rng.exponential(size=16)]
            sessions[name] = {
                "latencies": [None, *latencies[1:]],
                "clock": [float(i + 1) for i in range(16)],
                "spent": {"search": 2.0, "score": 1.0, "learn": 0.0, "compile": 9.0, "run": 4.0},
            }
        groups.append(
            {
                "task": f"t{task}",
                "desc": f"vm_mod_fused_nn_dense_{task}",
                "workload_key": f'["key{task}"]',
                "networks": {"mlp": task + 1},
                "flop": 1e9,
                "seed": 0,
                "sessions": sessions,
            }
        )
    content = {
        "format": "tlp-tvm-comparison",
        "format_version": 1,
        "contenders": ["tlp:4", "xgb:4", "random:4"],
        "target": TARGET,
        "model": "epyc",
        "trials": 16,
        "versions": {"tvm": "0.17.dev0"},
        "groups": groups,
        **changes,
    }
    folder.mkdir()
    (folder / "comparison.json").write_text(json.dumps(content))
    return folder


def test_the_page_of_a_comparison_has_everything(tmp_path: Path) -> None:
    page = report_page(write_comparison(tmp_path / "compared"))

    assert others_asked_for(page) == []
    assert page.count("<svg") == page.count("</svg>") == 4 + 2
    for heading in (
        "Against xgb:4",
        "Tasks",
        "Tasks against time",
        "Where the time went",
        "Settings",
        "Versions",
    ):
        assert f"<h2>{heading}</h2>" in page
    assert page.count("1 failed") == 6
    for words in (
        "<h1>mlp</h1>",
        "tlp:4, xgb:4, random:4",
        "nn_dense_1",
        "GFLOP/s",
        "1.6 min",
        "18 s",
        "of 2<",
    ):
        assert words in page


def test_a_comparison_without_tvms_own_model_or_a_whole_search_has_a_page(tmp_path: Path) -> None:
    begun = report_page(write_comparison(tmp_path / "begun", groups=[]))
    folder = write_comparison(tmp_path / "two")
    content = json.loads((folder / "comparison.json").read_text())
    content["contenders"].remove("xgb:4")
    for group in content["groups"]:
        del group["sessions"]["xgb:4"]
    content["groups"][0]["sessions"]["tlp:4"]["latencies"] = [None] * 16
    (folder / "comparison.json").write_text(json.dumps(content))

    assert "No search is complete yet" in begun
    page = report_page(folder)
    assert "xgb took no part" in page
    assert "none ran" in page
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)


def test_a_damaged_comparison_is_refused(tmp_path: Path) -> None:
    folder = write_comparison(tmp_path / "run", groups=[{"task": "t"}])

    with pytest.raises(ComparisonError, match="expected what a comparison writes, found KeyError"):
        report_page(folder)


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    folder = write_comparison(tmp_path / "run")
    chosen = tmp_path / "page.html"

    beside = CliRunner().invoke(app, ["report", str(folder)])
    elsewhere = CliRunner().invoke(app, ["report", str(folder), "--out", str(chosen)])

    assert (beside.exit_code, elsewhere.exit_code) == (0, 0)
    assert f"page: {folder / 'report.html'}" in beside.stdout
    assert (folder / "report.html").read_text() == chosen.read_text()


@pytest.mark.parametrize(("name", "found"), [("gone", "nothing"), ("empty", "neither"), ("file", "a file")])
def test_where_no_run_is_the_command_says_so(tmp_path: Path, name: str, found: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")

    done = CliRunner().invoke(app, ["report", str(tmp_path / name)])

    assert done.exit_code == 1
    assert f"error: {tmp_path / name}: expected a folder with run.json of `tlp-tvm tune`" in done.stderr
    assert f"found {found}; choose the folder of one of them" in done.stderr
    assert not (tmp_path / name / "report.html").exists()


def test_parts_of_a_page() -> None:
    assert figures([("title", "text", "")]) == ""
    assert 'class="n">1<' in section("<", "text", [">number"], [["1"]])
    assert "&lt;" in section("<", "text", [">number"], [["1"]])
    assert filled(["a", ">b"], [["", "1"], ["", ""]]) == ([">b"], [["1"], [""]])
    table = facts("title", "text", {"a_b": {"c": "<"}, "none": None, "nothing": "", "zero": 0})
    assert re.findall(r"<td>(.*?)</td>", table) == ["a_b, c", "zero"]
    assert "<code>&lt;</code>" in table
