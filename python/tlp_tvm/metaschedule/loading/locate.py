"""Load a TVM with MetaSchedule (0.25 to 0.27, the wheel `apache-tvm`), and say which one it is."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from tlp_tvm.errors import TvmNotFoundError
from tlp_tvm.metaschedule.loading.intrinsics import import_intrinsics
from tlp_tvm.metaschedule.loading.polynomials import use_polynomials

CURE = "in an environment of its own, install tlp-tvm[metaschedule]"

FFI = "apache-tvm-ffi"
FFI_TRIED = "0.1.14.post1"
FFI_BROKEN = "0.1.15.post2"
"""With it, the constructor of TVM 0.27's tuning context crashes (`ToJSONGraph`)."""


@dataclass(frozen=True)
class TvmInfo:
    """The TVM of this process.

    Attributes:
        version: e.g. "0.27.0.post1".
        python: folder that holds its package `tvm`.
        ffi_version: of the package apache-tvm-ffi.
        ffi_library: path of its `libtvm_ffi.so`.
    """

    version: str
    python: str
    ffi_version: str
    ffi_library: str


_lock = threading.RLock()
_loaded: tuple[Any, TvmInfo] | None = None
_searches = False


def load_tvm() -> Any:
    """Load a TVM with MetaSchedule, to search with it; later calls return the same module.

    Returns:
        The module `tvm`, with its intrinsics imported, which tuning contexts would import in a minute. What
        it compiles computes exp, erf and tanh as polynomials.

    Raises:
        TvmNotFoundError: there is none, or one that is known to be broken; the message says how to fix it.
    """
    global _searches
    with _lock:
        tvm = load_runtime()
        if not _searches:
            _importing(import_intrinsics, Path(tvm.__path__[0]))
            use_polynomials()
            _searches = True
        return tvm


def load_runtime() -> Any:
    """Load a TVM with MetaSchedule to run what is compiled, two seconds sooner than `load_tvm`.

    Raises:
        TvmNotFoundError: as `load_tvm`.
    """
    return _load_once()[0]


def tvm_info() -> TvmInfo:
    """Say which TVM `load_tvm` and `load_runtime` give, loading it first if need be.

    Raises:
        TvmNotFoundError: as `load_tvm`.
    """
    return _load_once()[1]


def has_metaschedule() -> bool:
    """Whether the TVM that this environment imports has MetaSchedule; nothing is imported to find out."""
    package = _package()
    return package is not None and _is_ours(package)


def check_ffi(version: str) -> None:
    """Refuse a version of apache-tvm-ffi that does not work.

    Raises:
        TvmNotFoundError: says which one does.
    """
    if version == FFI_BROKEN:
        raise TvmNotFoundError(
            f"expected {FFI} {FFI_TRIED}, found {version}, with which TVM's tuning context crashes "
            f"(ToJSONGraph); pip install {FFI}=={FFI_TRIED}"
        )


def _is_ours(package: Path) -> bool:
    return (package / "s_tir" / "meta_schedule" / "__init__.py").exists()


def _package() -> Path | None:
    if "tvm" in sys.modules:
        return Path(sys.modules["tvm"].__path__[0])
    spec = importlib.util.find_spec("tvm")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _load_once() -> tuple[Any, TvmInfo]:
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _load()
        return _loaded


def _load() -> tuple[Any, TvmInfo]:
    package = _package()
    if package is None:
        raise TvmNotFoundError(f"expected a TVM with MetaSchedule, found no package tvm; {CURE}")
    if not _is_ours(package):
        raise TvmNotFoundError(
            f"{package}: expected a TVM 0.25 to 0.27 with s_tir.meta_schedule, found none in this one; {CURE}"
        )
    try:
        ffi_version = metadata.version(FFI)
    except metadata.PackageNotFoundError as error:
        raise TvmNotFoundError(f"expected the package {FFI}, found none; {CURE}") from error
    check_ffi(ffi_version)
    tvm = _importing(_import_tvm, package)
    library = importlib.import_module("tvm_ffi.libinfo").find_libtvm_ffi()
    info = TvmInfo(str(tvm.__version__), str(package.parent), ffi_version, str(library))
    return tvm, info


def _import_tvm() -> Any:
    importlib.import_module("tvm.s_tir.meta_schedule")
    return importlib.import_module("tvm")


def _importing(what: Callable[[], Any], package: Path) -> Any:
    try:
        return what()
    except Exception as error:
        raise TvmNotFoundError(
            f"{package}: expected TVM to import, found {type(error).__name__}: {error}; {CURE}"
        ) from error
