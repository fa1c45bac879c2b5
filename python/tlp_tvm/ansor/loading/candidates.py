"""Which TVM: found and judged by its files, before anything of it is imported.

The order: a `tvm` that the process has already imported, `TVM_HOME`, a `tvm` that can be imported, and last
the one inside the wheel of `bitblas`, the only prebuilt TVM with Ansor on PyPI. `bitblas` itself is never
imported.
"""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tlp_tvm.errors import TvmNotFoundError

Source = Literal["imported", "TVM_HOME", "installed", "bundled"]

CURE = "install tlp-tvm[ansor] or set TVM_HOME to a TVM 0.8-0.19"


@dataclass(frozen=True)
class Candidate:
    """A TVM on disk.

    Attributes:
        package: the folder `tvm` itself.
        source: how it was found.
        passed_over: why an installed `tvm` was not taken before it; empty if there was none.
    """

    package: Path
    source: Source
    passed_over: str = ""

    @property
    def has_ansor(self) -> bool:
        """Whether it has the auto-scheduler, as 0.8 to 0.19 do."""
        return (self.package / "auto_scheduler" / "__init__.py").exists()

    @property
    def version(self) -> str:
        """Its version, read from its sources."""
        for file in ("_ffi/libinfo.py", "_version.py", "libinfo.py"):
            path = self.package / file
            text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
            if found := re.search(r"^__version__ = .*?[\"'](.+?)[\"']", text, re.MULTILINE):
                return found[1]
        return "of unknown version"

    @property
    def lack(self) -> str:
        """The clause that says that it has no Ansor."""
        return f"TVM {self.version} at {self.package} has no auto_scheduler (removed in 0.20)"


def find_tvm() -> Candidate:
    """The first TVM with Ansor.

    Raises:
        TvmNotFoundError: there is none, or what the user chose has no Ansor.
    """
    if "tvm" in sys.modules:
        return _already_imported()
    if home := os.environ.get("TVM_HOME"):
        return _in_tvm_home(Path(home))
    bitblas = _package_folder("bitblas")
    bundled = None if bitblas is None else bitblas / "3rdparty" / "tvm" / "python" / "tvm"
    installed = _package_folder("tvm")
    passed_over = ""
    # A parent process that loaded the bundled TVM leaves it importable here.
    if installed is not None and installed != bundled:
        candidate = Candidate(installed, "installed")
        if candidate.has_ansor:
            return candidate
        passed_over = candidate.lack
    if bundled is not None:
        candidate = Candidate(bundled, "bundled", passed_over)
        if candidate.has_ansor:
            return candidate
    nothing = "no TVM with auto_scheduler found: expected TVM_HOME, a package tvm, or the package bitblas"
    raise TvmNotFoundError(f"{passed_over or nothing}; {CURE}")


def library_of(candidate: Candidate) -> Path:
    """The `libtvm.so` that this TVM will load when imported.

    Raises:
        TvmNotFoundError: it has none.
    """
    if candidate.source == "imported":
        return Path(sys.modules["tvm._ffi.base"]._LIB._name)
    beside = candidate.package.parent.parent / "build" / "libtvm.so"
    if candidate.source in {"TVM_HOME", "bundled"} and beside.exists():
        return beside
    # TVM's own search, which knows TVM_LIBRARY_PATH and every place that TVM was ever built into.
    search = runpy.run_path(str(candidate.package / "_ffi" / "libinfo.py"))["find_lib_path"]
    found = [Path(path) for path in search(optional=True) or []]
    if not found or found[0].name != "libtvm.so":
        raise TvmNotFoundError(
            f"TVM {candidate.version} at {candidate.package}: expected its library libtvm.so, "
            f"found {found[0].name if found else 'none'}; build TVM there, or {CURE}"
        )
    return found[0]


def _already_imported() -> Candidate:
    candidate = Candidate(Path(sys.modules["tvm"].__path__[0]), "imported")
    if not candidate.has_ansor:
        raise TvmNotFoundError(f"{candidate.lack} and is already imported; in a new process, {CURE}")
    return candidate


def _in_tvm_home(home: Path) -> Candidate:
    candidate = Candidate(home.resolve() / "python" / "tvm", "TVM_HOME")
    if not (candidate.package / "__init__.py").exists():
        raise TvmNotFoundError(
            f"TVM_HOME={home}: expected a TVM with python/tvm and build/libtvm.so, found no python/tvm; "
            "set TVM_HOME to the root of a TVM 0.8-0.19, or unset it"
        )
    if not candidate.has_ansor:
        raise TvmNotFoundError(
            f"TVM_HOME={home}: {candidate.lack}; set TVM_HOME to a TVM 0.8-0.19, or unset it"
        )
    return candidate


def _package_folder(name: str) -> Path | None:
    """Folder of an importable package, without importing it; a folder without `__init__.py` is none."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])
