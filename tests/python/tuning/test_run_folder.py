"""The folder of a run: made, resumed, and refused when it is something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tlp_tvm.errors import TuningError
from tlp_tvm.tuning.run_folder import RunFolder, spent_before

SETTINGS = {"network": "mlp", "target": "llvm", "seed": 1}


def refused(path: Path, settings: dict[str, Any] | None = None) -> str:
    with pytest.raises(TuningError) as error:
        RunFolder(path).begin(settings or SETTINGS)
    return str(error.value)


def test_a_run_is_noted_and_gone_on_with(tmp_path: Path) -> None:
    RunFolder(tmp_path / "a" / "run").begin(SETTINGS)
    again = RunFolder(tmp_path / "a" / "run")
    again.log.write_text("{}\n")
    again.begin({**SETTINGS, "seed": 2})

    content = json.loads(again.report.read_text())
    assert content == {"format": "tlp-tvm-run", "format_version": 1, **SETTINGS, "seed": 2}
    assert sorted(path.name for path in again.path.iterdir()) == ["log.json", "run.json"]


def test_a_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refused(tmp_path / "file") == (
        f"{tmp_path}/file: expected a folder that can be written to, found: File exists; choose another `out`"
    )


@pytest.mark.parametrize(("entry", "found"), [("network", "mlp"), ("target", "llvm")])
def test_a_run_of_something_else_is_refused(tmp_path: Path, entry: str, found: str) -> None:
    RunFolder(tmp_path).begin(SETTINGS)
    assert refused(tmp_path, {**SETTINGS, entry: "x"}) == (
        f'{tmp_path}/run.json: expected a run of {entry} "x", found one of "{found}"; choose another `out`'
    )


def test_a_folder_with_a_log_that_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text("{}\n")
    assert refused(tmp_path) == (
        f"{tmp_path}: expected a run or an empty folder, found log.json without run.json; "
        "choose another `out`"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", "expected JSON, found Expecting property name"),
        ("[]", 'expected "format": "tlp-tvm-run", found none'),
        ("{}", 'expected "format": "tlp-tvm-run", found none'),
    ],
)
def test_a_report_that_is_none_is_refused(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "run.json").write_text(text)
    message = refused(tmp_path)
    assert message.startswith(f"{tmp_path}/run.json: {found}")
    assert message.endswith("; choose another `out`")


@pytest.mark.parametrize("seconds", [3, {"search": "long"}, {"search": None}])
def test_seconds_that_are_none_are_refused(seconds: Any) -> None:
    with pytest.raises(TuningError) as error:
        spent_before({"seconds": seconds})
    assert str(error.value) == (
        f"run.json: seconds: expected numbers by step, found {seconds!r}; choose another `out`"
    )
    assert spent_before({}) == {}
    assert spent_before({"seconds": {"search": 2}}) == {"search": 2.0}
