"""`tlp-tvm doctor`: what it finds here, and how it says what is wrong."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from tlp_tvm import framework
from tlp_tvm.ansor.loading import diagnosis
from tlp_tvm.ansor.loading.diagnosis import diagnose
from tlp_tvm.cli.doctor import doctor
from tlp_tvm.errors import TvmNotFoundError
from tlp_tvm.machine.checks import Check
from tlp_tvm.machine.cpu import this_cpu

NAMES = ["framework", "TVM", "library", "object layout", "child process", "kernel", "networks", "GPU"]
NAMES += ["CPU", "torch"]

app = typer.Typer()
app.command()(doctor)


def test_all_is_well_where_the_tests_run() -> None:
    finished = CliRunner().invoke(app, ["--json"])

    assert finished.exit_code == 0, finished.output
    result = json.loads(finished.stdout)
    assert result["ok"] is True
    found = {check["name"]: check["found"] for check in result["checks"] if check["ok"]}
    assert list(found) == NAMES
    assert found["framework"].startswith("Ansor")
    assert "0.17.dev0" in found["TVM"]
    assert found["object layout"].startswith("14 kinds, ")
    assert found["child process"] == "imports the same TVM"
    assert "run for llvm -mcpu=" in found["kernel"]
    assert (" us from one to another and back), platform " in found["CPU"]) == (this_cpu().cores > 1)


def test_what_is_wrong_stands_there_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [Check("child process", False, "it hangs", "restart it")]
    here = SimpleNamespace(title="0.19", checks=lambda: checks)
    monkeypatch.setattr(framework, "framework_here", lambda: here)

    finished = CliRunner().invoke(app, [])

    assert finished.exit_code == 1
    rows = [line for line in finished.stdout.splitlines() if "│" in line]
    assert "OK" in rows[0]
    assert "0.19" in rows[0]
    assert "FAILED" in rows[1]
    assert "it hangs" in rows[1]
    assert "-> restart it" in rows[2]


def test_without_a_tvm_the_rest_is_still_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise TvmNotFoundError("no TVM found here; install one")

    monkeypatch.setattr(diagnosis, "tvm_info", refuse)

    checks = diagnose()

    assert checks[0] == Check("TVM", False, "no TVM found here", "install one")
    assert [check.name for check in checks] == ["TVM", "CPU", "torch"]
    assert all(check.ok for check in checks[1:])


def test_a_check_that_fails_says_what_it_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise KeyError("avx")

    monkeypatch.setattr(diagnosis, "_WITH_TVM", {})
    monkeypatch.setattr(diagnosis, "_WITHOUT_TVM", {"CPU": broken})

    assert diagnose()[-1] == Check("CPU", False, "KeyError: 'avx'")
