"""What commands print is text, whole, and a line a step where there is no terminal."""

from __future__ import annotations

import errno
import io
import re
from pathlib import Path

import pytest
import typer
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

import tlp_tvm
from commands import refused
from tlp_tvm.cli.app import app
from tlp_tvm.cli.parts import common, progress
from tlp_tvm.cli.parts.common import print_table
from tlp_tvm.cli.parts.progress import MeasuringProgress, status

MARKUP = "[/x] [bold] [d37,1,56] :smile:"


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"{tlp_tvm.__version__}\n")


def test_brackets_of_a_message_are_not_markup(tmp_path: Path) -> None:
    found = refused("export", tmp_path / MARKUP, "-o", tmp_path / "m.pt")
    assert found == (
        f"error: {tmp_path}/{MARKUP}: expected a shipped model (epyc, epyc-metaschedule, epyc-small, x86, "
        "x86-metaschedule), a checkpoint folder or an exported .pt file, found none of them"
    )


@pytest.mark.parametrize("printer", [common.console, common.progress_console])
def test_what_is_printed_is_text(printer: Console) -> None:
    with printer.capture() as printed:
        printer.print(MARKUP)
    assert printed.get() == f"{MARKUP}\n"


def test_fields_of_a_message_are_said_as_options(tmp_path: Path) -> None:
    assert refused("collect", "mlp", "--out", tmp_path, "--labels", "7%") == (
        "error: --labels 7%: expected --programs-from, a folder with programs to choose from, found none; "
        "give it, or measure new programs with --programs"
    )
    assert refused("compare", "mlp", "--out", tmp_path, "--models", "tlp,gnn") == (
        'error: --models "gnn": expected one of tlp, tlp-online, tlp-top, xgb, random, optionally with '
        "programs per round and population: xgb:64:2048"
    )


def test_a_full_disk_is_said_with_its_file_and_the_cure(capsys: pytest.CaptureFixture[str]) -> None:
    @common.one_sentence_errors
    def command() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "run/run.json")

    with pytest.raises(typer.Exit):
        command()
    assert capsys.readouterr().err == (
        "error: run/run.json: expected room on the disk, found: No space left on device; make room, and run "
        "the same command again: what was written is kept\n"
    )


@pytest.mark.parametrize("width", [20, 40, 80])
def test_figures_of_a_table_are_never_cut(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    out = io.StringIO()
    monkeypatch.setattr(common, "console", Console(file=out, width=width, markup=False, emoji=False))
    table = Table(title=f"a title {MARKUP}")
    for name in ("route", "states/s", "ratio\nto it"):
        table.add_column(name, justify="left" if name == "route" else "right", no_wrap=True)
    table.add_row("native, a layout of a long name, all threads", "1,679,123", "5,390.4x")
    table.add_row(MARKUP, "1", "")
    print_table(table)
    for whole in ("1,679,123", "5,390.4x", "states/s", "to it"):
        assert whole in out.getvalue()
    assert "…" not in out.getvalue()
    text = re.sub(r"[^\w\[\]:,.]", "", out.getvalue())
    assert text.count("[bold]") == text.count(":smile:") == 2


def test_without_a_terminal_there_is_a_line_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(progress, "progress_console", Console(file=out, width=200, markup=False, emoji=False))
    with status("starting") as tell:
        tell(f"first {MARKUP}")
        tell("second")
    assert out.getvalue() == f"first {MARKUP}\nsecond\n"


def test_without_a_terminal_a_long_step_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, out = [0.0], io.StringIO()
    with MeasuringProgress(out) as shown:
        monkeypatch.setattr(shown, "get_time", lambda: clock[0])
        shown.step("measuring", 800)
        for second in range(1, 81):
            clock[0] = float(second)
            shown.measured(second, f"{second // 10} of 9 tasks done")
    assert out.getvalue().strip().split("\n") == [
        "measuring",
        "measuring 30/800, 3 of 9 tasks done",
        "measuring 60/800, 6 of 9 tasks done",
    ]


def test_a_step_without_an_end_counts_what_it_did() -> None:
    out = io.StringIO()
    with MeasuringProgress(out) as shown:
        shown.step("measuring programs of 4 tasks")
        shown.part("measuring dense")
        shown.measured(1, "0.5 of 5 minutes")
        shown.part("measuring conv2d")
    assert out.getvalue().strip().split("\n") == [
        "measuring programs of 4 tasks",
        "measuring dense",
        "measuring conv2d 1 programs, 0.5 of 5 minutes",
    ]


def test_without_a_terminal_measuring_prints_a_line_a_step_and_what_it_is_told_to() -> None:
    out = io.StringIO()
    with MeasuringProgress(out) as shown:
        shown.step("splitting [a] into tasks")
        shown.step("searching", 8, 2)
        shown.part("task 1")
        for completed in range(3, 6):
            shown.measured(completed, f"xgb: {9 - completed} ms")
            shown.part("task 1")
        shown.line("task 1, xgb: 3 programs, best 4 ms")
        shown.part("task 2")
    assert out.getvalue().strip().split("\n") == [
        "splitting [a] into tasks",
        "searching 2/8",
        "task 1 2/8",
        "task 1, xgb: 3 programs, best 4 ms",
        "task 2 5/8, xgb: 4 ms",
    ]
