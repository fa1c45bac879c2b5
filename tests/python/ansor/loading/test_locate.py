"""Which TVM is loaded, in fresh processes, and what a user is told who has none that will do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from processes import bundled_tvm, run_python
from tlp_tvm.ansor.loading.stand_ins import stand_in_path

CURE = "install tlp-tvm[ansor] or set TVM_HOME to a TVM 0.8-0.19"
WITHOUT_BUNDLED = "import sys; sys.modules['bitblas'] = None\n"


@pytest.fixture
def tvm_without_ansor(tmp_path: Path) -> Path:
    """A folder to put on PYTHONPATH; what 0.27 looks like on disk."""
    package = tmp_path / "modern" / "tvm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "_version.py").write_text("__version__ = version = '0.27.0'\n")
    return package.parent


@pytest.fixture
def tvm_home(tmp_path: Path) -> Path:
    """The root of a TVM whose sources look right; its library is missing."""
    package = tmp_path / "home" / "python" / "tvm"
    for folder in (package / "auto_scheduler", package / "_ffi", tmp_path / "home" / "build"):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text("import no_such_module_of_tvm\n")
    (package / "auto_scheduler" / "__init__.py").write_text("")
    shutil.copy(bundled_tvm() / "python" / "tvm" / "_ffi" / "libinfo.py", package / "_ffi")
    return tmp_path / "home"


def refusal(code: str = "", **variables: str) -> str:
    """The sentence of load_tvm after running `code`."""
    script = """
from tlp_tvm.ansor import load_tvm
from tlp_tvm.errors import TvmNotFoundError
try:
    load_tvm()
except TvmNotFoundError as error:
    report(message=str(error))
"""
    message: str = run_python(code + script, **variables)["message"]
    return message


LOADED = """
from tlp_tvm.ansor.loading.locate import load_tvm, tvm_info
tvm = load_tvm()
assert load_tvm() is tvm
from dataclasses import asdict
info = asdict(tvm_info())
"""


@pytest.mark.parametrize("torch", ["never", "first", "second"])
def test_the_bundled_tvm_works_whenever_torch_is_imported(torch: str) -> None:
    result = run_python(
        ("import torch\n" if torch == "first" else "")
        + LOADED
        + ("import torch\n" if torch == "second" else "")
        + """
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.ansor import steps_of
import sys
states = sample_states(operator_task("dense", "llvm"), 2)
product = float((torch.ones(8, 8) @ torch.ones(8, 8)).sum()) if "torch" in sys.modules else 512.0
report(info=info, steps=len(steps_of(states[0])), product=product, exist=tvm.cuda().exist)
"""
    )

    info = result["info"]
    assert info["source"] == "bundled"
    assert info["version"] == "0.17.dev0"
    assert Path(info["python"]) == bundled_tvm() / "python"
    assert Path(info["library"]) == bundled_tvm() / "build" / "libtvm.so"
    assert info["passed_over"] == ""
    assert result["steps"] > 3
    assert result["product"] == 512.0
    assert bool(info["stand_ins"]) != result["exist"]


def test_tvms_children_import_the_same_tvm_stay_offline_and_leave_nothing(tmp_path: Path) -> None:
    result = run_python(
        f"import os; os.chdir({str(tmp_path)!r})"
        + LOADED
        + """
import subprocess
from tvm.contrib.popen_pool import PopenWorker

def look():
    import os
    import tvm
    return tvm.__file__, tvm._ffi.base._LIB._name, os.environ["TOPHUB_LOCATION"]

worker = PopenWorker(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
worker.send(look, timeout=60)
report(info=info, child=worker.recv())
worker.kill()
"""
    )

    package, library, tophub = result["child"]
    assert Path(package) == bundled_tvm() / "python" / "tvm" / "__init__.py"
    assert library == result["info"]["library"]
    assert tophub == "NONE"
    assert list(tmp_path.iterdir()) == []


def test_a_tvm_without_ansor_is_passed_over_for_the_bundled_one(tvm_without_ansor: Path) -> None:
    info = run_python(LOADED + "report(**info)", PYTHONPATH=str(tvm_without_ansor))

    assert info["source"] == "bundled"
    assert info["passed_over"] == (
        f"TVM 0.27.0 at {tvm_without_ansor}/tvm has no auto_scheduler (removed in 0.20)"
    )


def test_tvm_home_comes_before_the_bundled_one() -> None:
    info = run_python(LOADED + "report(**info)", TVM_HOME=str(bundled_tvm()))

    assert info["source"] == "TVM_HOME"


def test_an_installed_tvm_comes_before_the_bundled_one(tmp_path: Path) -> None:
    (tmp_path / "tvm").symlink_to(bundled_tvm() / "python" / "tvm")

    found = run_python(
        """
        from tlp_tvm.ansor.loading.candidates import find_tvm, library_of
        tvm = find_tvm()
        report(source=tvm.source, package=str(tvm.package), library=str(library_of(tvm)))
        """,
        PYTHONPATH=str(tmp_path),
    )

    library = bundled_tvm() / "build" / "libtvm.so"
    assert found == {"source": "installed", "package": str(tmp_path / "tvm"), "library": str(library)}


def test_a_tvm_that_is_already_imported_is_the_one() -> None:
    libraries = [str(stand_in_path(name)) for name in ("libcuda.so.1", "libcudart.so.12", "libnvrtc.so.12")]
    by_hand = f"import ctypes\nfor path in {json.dumps(libraries)}: ctypes.CDLL(path, ctypes.RTLD_GLOBAL)\n"

    result = run_python(
        by_hand + "import tvm as theirs\n" + LOADED + "report(info=info, same=tvm is theirs)",
        PYTHONPATH=str(bundled_tvm() / "python"),
    )

    assert result["same"]
    assert result["info"]["source"] == "imported"
    assert result["info"]["stand_ins"] == ["libcuda.so.1", "libcudart.so.12", "libnvrtc.so.12"]


def test_no_tvm_at_all() -> None:
    assert refusal(WITHOUT_BUNDLED) == (
        f"no TVM with auto_scheduler found: expected TVM_HOME, a package tvm, or the package bitblas; {CURE}"
    )


def test_only_a_tvm_without_ansor(tvm_without_ansor: Path) -> None:
    message = refusal(WITHOUT_BUNDLED, PYTHONPATH=str(tvm_without_ansor))

    assert message == (
        f"TVM 0.27.0 at {tvm_without_ansor}/tvm has no auto_scheduler (removed in 0.20); {CURE}"
    )


def test_a_tvm_without_ansor_is_already_imported(tvm_without_ansor: Path) -> None:
    message = refusal("import tvm\n", PYTHONPATH=str(tvm_without_ansor))

    assert message == (
        f"TVM 0.27.0 at {tvm_without_ansor}/tvm has no auto_scheduler (removed in 0.20) "
        f"and is already imported; in a new process, {CURE}"
    )


def test_tvm_home_is_no_tvm(tmp_path: Path) -> None:
    assert refusal(TVM_HOME=str(tmp_path)) == (
        f"TVM_HOME={tmp_path}: expected a TVM with python/tvm and build/libtvm.so, found no python/tvm; "
        "set TVM_HOME to the root of a TVM 0.8-0.19, or unset it"
    )


def test_tvm_home_has_no_ansor(tvm_without_ansor: Path) -> None:
    home = tvm_without_ansor.rename(tvm_without_ansor.parent / "python").parent

    assert refusal(TVM_HOME=str(home)) == (
        f"TVM_HOME={home}: TVM 0.27.0 at {home}/python/tvm has no auto_scheduler (removed in 0.20); "
        "set TVM_HOME to a TVM 0.8-0.19, or unset it"
    )


def test_the_library_is_missing(tvm_home: Path) -> None:
    assert refusal(TVM_HOME=str(tvm_home)) == (
        f"TVM 0.17.dev0 at {tvm_home}/python/tvm: expected its library libtvm.so, found none; "
        f"build TVM there, or {CURE}"
    )


def test_there_is_only_the_runtime_library(tvm_home: Path) -> None:
    (tvm_home / "build" / "libtvm_runtime.so").write_bytes(b"")

    assert "expected its library libtvm.so, found libtvm_runtime.so; build TVM there" in refusal(
        TVM_HOME=str(tvm_home)
    )


def test_the_library_is_broken(tvm_home: Path) -> None:
    library = tvm_home / "build" / "libtvm.so"
    library.write_text("no library at all, " * 1000)

    assert refusal(TVM_HOME=str(tvm_home)) == (
        f"{library}: expected the library of TVM 0.17.dev0 to load, found: {library}: invalid ELF header; "
        f"repair it, or {CURE} that loads"
    )


def test_the_python_side_does_not_import(tvm_home: Path) -> None:
    shutil.copy(stand_in_path("libcuda.so.1"), tvm_home / "build" / "libtvm.so")

    assert refusal(TVM_HOME=str(tvm_home)) == (
        f"{tvm_home}/python/tvm: expected TVM 0.17.dev0 to import, found ModuleNotFoundError: "
        f"No module named 'no_such_module_of_tvm'; repair it, or {CURE} that imports"
    )
