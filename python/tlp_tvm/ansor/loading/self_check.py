"""The self-check of the native reader: it is trusted only after it read what TVM's own serialiser writes.

The reader knows the memory layout of Ansor's objects by heart, as no TVM package ships headers. TVM's
`SerializeMeasureInput` writes the same steps into records; over programs with every kind of step both must
agree in every primitive, or the reader is never used. They are compared in a child process, since objects of
another layout may end it, once for each library: the outcome is kept in the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tlp_tvm import _core
from tlp_tvm.ansor.loading.layout_comparison import ANSWER, SelfCheckReport
from tlp_tvm.ansor.loading.locate import tvm_info
from tlp_tvm.errors import AbiMismatchError
from tlp_tvm.files import user_cache, write_whole

_SECONDS = 300
"""So long a child may take; a few seconds are usual."""

_CHILD = """
import json, sys
path, python, library = json.loads(sys.argv[1])
sys.path[:] = path
from tlp_tvm.ansor.loading.layout_comparison import answer
answer(python, library)
"""

_lock = threading.RLock()
_reader: _core.StateReader | None = None
_refusal = ""
"""Why the reader is not to be used."""


def ensure_native(tvm: Any) -> _core.StateReader:
    """The native reader of the loaded TVM, once its library has passed; a refusal is remembered too.

    Args:
        tvm: the module that `load_tvm` gave.

    Raises:
        AbiMismatchError: TVM's objects are not laid out as the reader expects.
    """
    global _reader, _refusal
    with _lock:
        if _refusal:
            raise AbiMismatchError(_refusal)
        if _reader is None:
            try:
                if not _has_passed(_outcome_file()):
                    check_layout(tvm)
            except AbiMismatchError as error:
                _refusal = str(error)
                raise
            _reader = _core.StateReader.bind(tvm_info().library)
        return _reader


def check_layout(tvm: Any) -> SelfCheckReport:
    """Run the self-check, again if it ran before.

    Args:
        tvm: the module that `load_tvm` gave.

    Raises:
        AbiMismatchError: names the TVM, its library and the first difference.
    """
    del tvm  # the child loads it again
    outcome = _outcome_of_child()
    if "difference" in outcome:
        raise _mismatch(str(outcome["difference"]))
    report = SelfCheckReport(tuple(outcome["kinds"]), outcome["states"], outcome["steps"])
    file = _outcome_file()
    with contextlib.suppress(OSError):  # where nothing can be kept, each process checks for itself
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps({**asdict(report), "library": tvm_info().library}) + "\n")
    return report


def _outcome_of_child() -> dict[str, Any]:
    info = tvm_info()
    arguments = json.dumps([sys.path, info.python, info.library])
    try:
        child = subprocess.run(
            [sys.executable, "-c", _CHILD, arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"difference": f"reading them in a child process took more than {_SECONDS} s"}
    for line in child.stdout.splitlines():
        if line.startswith(ANSWER):
            outcome: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
            return outcome
    if child.returncode < 0:
        how = signal.Signals(-child.returncode).name
    else:
        how = (child.stderr.strip().splitlines() or [f"exit status {child.returncode}"])[-1]
    return {"difference": f"reading them ended a child process ({how})"}


def _outcome_file() -> Path:
    """Where it is kept that this reader reads this library's objects."""
    names = [_digest_of(Path(path)) for path in (tvm_info().library, _core.__file__)]
    return user_cache() / "object-layout" / f"{'-'.join(names)}.json"


def _digest_of(file: Path) -> str:
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return hashlib.sha256(content).hexdigest()[:32]


def _has_passed(file: Path) -> bool:
    try:
        return int(json.loads(file.read_text())["states"]) > 0
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _mismatch(difference: str) -> AbiMismatchError:
    info = tvm_info()
    return AbiMismatchError(
        f"TVM {info.version} ({info.library}): its objects are not laid out as the native reader expects: "
        f'{difference}; use extract_states(..., route="record"), or a TVM 0.8-0.19 built for x86-64 Linux'
    )
