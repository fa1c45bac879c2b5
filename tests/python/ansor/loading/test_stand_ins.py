"""The stand-ins have all that the bundled TVM needs of CUDA, fail as told, and give way to real libraries."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from processes import bundled_tvm, run_python
from tlp_tvm.ansor.loading.stand_ins import FOLDERS, stand_in_path

NO_DEVICE = 100


def dynamic_symbols(library: Path, *, defined: bool) -> set[str]:
    """Names with their versions: `cudaFree@libcudart.so.12`."""
    listing = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", str(library)], check=True, capture_output=True, text=True
    ).stdout
    symbols = set()
    for line in listing.splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[3] == "FUNC" and (columns[6] != "UND") == defined:
            symbols.add(columns[7].replace("@@", "@"))
    return symbols


def test_nothing_that_the_bundled_tvm_needs_is_missing() -> None:
    needed = {
        name
        for name in dynamic_symbols(bundled_tvm() / "build" / "libtvm.so", defined=False)
        if re.match("cu[A-Z]|cuda|nvrtc", name)
    }
    supplied = {name for library in FOLDERS for name in dynamic_symbols(stand_in_path(library), defined=True)}

    assert len(needed) == 47
    assert supplied == needed


def test_every_function_answers_no_device() -> None:
    for name in FOLDERS:
        library = ctypes.CDLL(str(stand_in_path(name)))
        for symbol in dynamic_symbols(stand_in_path(name), defined=True):
            function = getattr(library, symbol.partition("@")[0])
            size = ctypes.c_size_t(7)
            text = ctypes.c_char_p()
            if symbol.startswith(("cudaGetErrorString", "nvrtcGetErrorString")):
                function.restype = ctypes.c_char_p
                assert b"no CUDA on this machine" in function(1)
            elif symbol.startswith("cuGetErrorName"):
                assert function(1, ctypes.byref(text)) == NO_DEVICE
                assert b"no CUDA on this machine" in (text.value or b"")
            else:
                assert function(ctypes.byref(size), ctypes.byref(size)) == NO_DEVICE, symbol


@pytest.mark.parametrize(
    ("library", "function", "kind"),
    [
        ("libcudart.so.12", "cudaGetDeviceCount", ctypes.c_int),
        ("libnvrtc.so.12", "nvrtcGetPTXSize", ctypes.c_size_t),
        ("libnvrtc.so.12", "nvrtcGetProgramLogSize", ctypes.c_size_t),
    ],
)
def test_counts_are_zero(library: str, function: str, kind: type) -> None:
    count = kind(7)
    arguments = [ctypes.byref(count)] if library == "libcudart.so.12" else [None, ctypes.byref(count)]

    assert getattr(ctypes.CDLL(str(stand_in_path(library))), function)(*arguments) == NO_DEVICE
    assert count.value == 0


def test_a_real_library_beside_python_is_taken_before_the_stand_in(tmp_path: Path) -> None:
    """As NVIDIA's wheels install it; a copy of the stand-in plays the real one."""
    folder = tmp_path / "nvidia" / "cuda_runtime" / "lib"
    folder.mkdir(parents=True)
    shutil.copy(stand_in_path("libcudart.so.12"), folder)

    result = run_python(
        """
        import os
        from tlp_tvm.ansor.loading.locate import tvm_info

        report(stand_ins=tvm_info().stand_ins, folders=os.environ["LD_LIBRARY_PATH"].split(":"))
        """,
        PYTHONPATH=str(tmp_path),
    )

    assert "libcudart.so.12" not in result["stand_ins"]
    assert str(folder) in result["folders"]
    assert str(stand_in_path("libcudart.so.12").parent) not in result["folders"]
