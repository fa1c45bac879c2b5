"""Stand-ins for the CUDA libraries that a TVM built with CUDA is linked against.

Such a TVM does not load on a machine without CUDA, not even to work on the CPU. The stand-ins, built from
`cpp/cuda_stand_in/`, have the functions it needs, and each answers "no device". One is loaded only where the
real library cannot be.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

from tlp_tvm import _core

FOLDERS = {"libcuda.so.1": "cuda", "libcudart.so.12": "cudart", "libnvrtc.so.12": "nvrtc"}
"""Library name to the folder of its stand-in; a folder each, so that LD_LIBRARY_PATH can name one alone."""

_MISSING = re.compile(r"^([^:/]+): ")
"""How the loader begins to say that it found no such library; the rest depends on the user's language."""


def stand_in_path(name: str) -> Path:
    """Where the stand-in for a library lies, in an editable install too.

    Args:
        name: one of `FOLDERS`.
    """
    return Path(_core.__file__).parent / "stand_ins" / FOLDERS[name] / name


def load_with_stand_ins(library: Path) -> None:
    """Load a library for the whole process, with stand-ins for just those CUDA libraries that are missing.

    Args:
        library: `libtvm.so`.

    Raises:
        OSError: the library does not load, for any other reason than a missing CUDA library.
    """
    supplied: set[str] = set()
    while True:
        try:
            ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
            return
        except OSError as error:
            missing = _MISSING.match(str(error))
            if missing is None or missing[1] not in FOLDERS or missing[1] in supplied:
                raise
            _supply(missing[1])
            supplied.add(missing[1])


def stand_ins_in_use() -> tuple[str, ...]:
    """Names of the libraries whose stand-ins this process has loaded, by whatever way."""
    maps = Path("/proc/self/maps")
    mapped = maps.read_text() if maps.exists() else ""
    return tuple(name for name in FOLDERS if f"/stand_ins/{FOLDERS[name]}/{name}" in mapped)


def child_library_folders() -> list[Path]:
    """Folders that a child process needs on LD_LIBRARY_PATH to find what this process found."""
    in_use = stand_ins_in_use()
    folders = []
    for name in FOLDERS:
        if name in in_use:
            folders.append(stand_in_path(name).parent)
        elif installed := _installed_beside_python(name):
            folders.append(installed[0].parent)
    return folders


def _supply(name: str) -> None:
    """Load the library that NVIDIA's Python wheels or Conda brought along, or else the stand-in."""
    for path in [*_installed_beside_python(name), stand_in_path(name)]:
        try:
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
            return
        except OSError:
            continue


def _installed_beside_python(name: str) -> list[Path]:
    """Real CUDA libraries where the loader does not look, but PyTorch does: it must not get a stand-in."""
    wheels = [path for entry in sys.path for path in sorted(Path(entry).glob(f"nvidia/*/lib/{name}"))]
    conda = Path(sys.prefix) / "lib" / name
    return [*wheels, conda] if conda.exists() else wheels
