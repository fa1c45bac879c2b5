"""Load a TVM with Ansor (0.8 to 0.19), and say which one it is."""

from __future__ import annotations

import importlib
import sys
import threading
from dataclasses import dataclass
from typing import Any

from tlp_tvm.ansor.loading.candidates import CURE, Candidate, Source, find_tvm, library_of
from tlp_tvm.ansor.loading.environment import keep_offline, lead_children, remove_litter_at_exit
from tlp_tvm.ansor.loading.folding import fold_faster
from tlp_tvm.ansor.loading.stand_ins import child_library_folders, load_with_stand_ins, stand_ins_in_use
from tlp_tvm.ansor.loading.typed_once import infer_once
from tlp_tvm.errors import TvmNotFoundError


@dataclass(frozen=True)
class TvmInfo:
    """The TVM of this process.

    Attributes:
        version: e.g. "0.17.dev0".
        python: folder that holds its package `tvm`.
        library: path of its `libtvm.so`.
        source: already imported by the process, from `TVM_HOME`, installed, or bundled in `bitblas`.
        stand_ins: names of the CUDA libraries that are stand-ins.
        passed_over: why an installed `tvm` was not taken; empty if there was none.
    """

    version: str
    python: str
    library: str
    source: Source
    stand_ins: tuple[str, ...]
    passed_over: str


_lock = threading.RLock()
_loaded: tuple[Any, TvmInfo] | None = None


def load_tvm() -> Any:
    """Load a TVM with Ansor; later calls return the same module.

    Works with torch imported before, after or never. Sets `os.environ` so that TVM's child processes get the
    same TVM (`PYTHONPATH`, `LD_LIBRARY_PATH`, `TVM_LIBRARY_PATH`), and so that TVM stays offline
    (`TOPHUB_LOCATION`, if unset).

    Returns:
        The module `tvm`, with `tvm.auto_scheduler` imported.

    Raises:
        TvmNotFoundError: there is none, or the one that was chosen is broken; the message says how to fix it.
    """
    return _load_once()[0]


def tvm_info() -> TvmInfo:
    """Say which TVM `load_tvm` gives, loading it first if need be.

    Raises:
        TvmNotFoundError: as `load_tvm`.
    """
    return _load_once()[1]


def _load_once() -> tuple[Any, TvmInfo]:
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _load(find_tvm())
        return _loaded


def _load(candidate: Candidate) -> tuple[Any, TvmInfo]:
    library = library_of(candidate)
    keep_offline()
    try:
        load_with_stand_ins(library)
    except OSError as error:
        raise TvmNotFoundError(
            f"{library}: expected the library of TVM {candidate.version} to load, found: {error}; "
            f"repair it, or {CURE} that loads"
        ) from error
    remove_litter_at_exit()
    python = candidate.package.parent
    lead_children(python, library, child_library_folders())
    if candidate.source in {"TVM_HOME", "bundled"}:
        sys.path.insert(0, str(python))
    try:
        tvm = importlib.import_module("tvm")
        importlib.import_module("tvm.auto_scheduler")
        fold_faster(tvm)
        infer_once(tvm)
    except Exception as error:
        raise TvmNotFoundError(
            f"{candidate.package}: expected TVM {candidate.version} to import, "
            f"found {type(error).__name__}: {error}; repair it, or {CURE} that imports"
        ) from error
    info = TvmInfo(
        version=str(tvm.__version__),
        python=str(python),
        library=str(library),
        source=candidate.source,
        stand_ins=stand_ins_in_use(),
        passed_over=candidate.passed_over,
    )
    return tvm, info
