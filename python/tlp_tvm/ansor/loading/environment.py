"""The environment that leads TVM's child processes to the same TVM with the same stand-ins.

TVM compiles and measures programs in children (`tvm.exec.popen_worker`) that import `tvm` afresh and know
nothing of what their parent did to load it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import site
from collections.abc import Iterable
from pathlib import Path


def keep_offline() -> None:
    """Stop TVM from downloading its "TopHub" of tuned operators, unless the user chose a location."""
    os.environ.setdefault("TOPHUB_LOCATION", "NONE")


def lead_children(python: Path, library: Path, library_folders: Iterable[Path]) -> None:
    """Set `os.environ` so that children import the TVM of this process.

    Args:
        python: folder that holds the package `tvm`.
        library: its `libtvm.so`.
        library_folders: where further shared libraries lie; searched after the user's own folders.
    """
    # In front of the standard library, site-packages would shadow modules of it; children search it anyway.
    if python not in _site_folders():
        _put_in_list("PYTHONPATH", python, first=True)
    for folder in library_folders:
        _put_in_list("LD_LIBRARY_PATH", folder, first=False)
    os.environ["TVM_LIBRARY_PATH"] = str(library.parent)


def remove_litter_at_exit() -> None:
    """Remove the empty folder that TVM's import, in children too, leaves in the current directory."""
    litter = Path.cwd() / ".pkl_memoize_py3"
    if not litter.exists():
        atexit.register(_remove_empty, litter)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _site_folders() -> set[Path]:
    return {Path(folder) for folder in [*site.getsitepackages(), site.getusersitepackages()]}


def _put_in_list(variable: str, folder: Path, *, first: bool) -> None:
    """Add a folder to a variable like PATH, once."""
    others = [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
    others = [entry for entry in others if entry != str(folder)]
    os.environ[variable] = os.pathsep.join([str(folder), *others] if first else [*others, str(folder)])
