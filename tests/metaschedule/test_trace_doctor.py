"""`tlp-tvm doctor` where the TVM is one with MetaSchedule."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tlp_tvm.ansor.loading.candidates import find_tvm
from tlp_tvm.cli.doctor import doctor
from tlp_tvm.errors import TvmNotFoundError
from tlp_tvm.metaschedule.loading import locate
from tlp_tvm.metaschedule.loading.intrinsics import INTRINSICS
from tlp_tvm.metaschedule.loading.locate import FFI_BROKEN, FFI_TRIED, check_ffi, load_tvm, tvm_info

app = typer.Typer()
app.command()(doctor)


def test_all_is_well_where_the_tests_run() -> None:
    finished = CliRunner().invoke(app, ["--json"])
    assert finished.exit_code == 0, finished.output
    result = json.loads(finished.stdout)
    found = {check["name"]: check["found"] for check in result["checks"] if check["ok"]}
    assert list(found) == ["framework", "TVM", "design spaces", "trace reader", "kernel", "GPU", "torch"]
    assert found["framework"].startswith("MetaSchedule")
    assert found["TVM"].startswith("0.27.0.post1, apache-tvm-ffi 0.1.14.post1, ")


def test_the_broken_tvm_ffi_is_refused_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    check_ffi(FFI_TRIED)
    monkeypatch.setattr(locate, "_loaded", None)
    monkeypatch.setattr(metadata, "version", lambda name: FFI_BROKEN)

    finished = CliRunner().invoke(app, ["--json"])

    assert finished.exit_code == 1
    tvm = json.loads(finished.stdout)["checks"][1]
    assert (tvm["name"], tvm["ok"]) == ("TVM", False)
    assert tvm["found"] == (
        "expected apache-tvm-ffi 0.1.14.post1, found 0.1.15.post2, with which TVM's tuning context crashes "
        "(ToJSONGraph)"
    )
    assert tvm["cure"] == "pip install apache-tvm-ffi==0.1.14.post1"


def test_ansor_is_not_found_here_and_that_is_said() -> None:
    load_tvm()
    with pytest.raises(TvmNotFoundError, match=r"TVM 0\.27.* has no auto_scheduler \(removed in 0\.20\)"):
        find_tvm()


def test_the_intrinsics_are_there_and_inspect_is_as_it_was() -> None:
    load_tvm()
    assert INTRINSICS in sys.modules
    assert inspect.getouterframes.__module__ == "inspect"
    from tvm.s_tir import TensorIntrin

    assert TensorIntrin.get("wmma_sync_16x16x16_f16f16f32") is not None


def test_the_ffi_library_is_the_one_in_the_process() -> None:
    assert tvm_info().ffi_library in Path("/proc/self/maps").read_text()


def test_importing_the_package_imports_neither_tvm_nor_torch() -> None:
    modules = "sys, tlp_tvm.features, tlp_tvm.metaschedule.loading.locate"
    code = f"import {modules}; print({{'tvm', 'torch'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
