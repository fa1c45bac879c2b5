"""Work of a process for a remote device: compile a program into a file and have the device time it.

As in `work`, children import this module by name; it must stay light.
"""

from __future__ import annotations

import json
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.measuring.work import Serialized, compiled
from tlp_tvm.measuring.child import (
    COLD,
    COMPILE,
    NO_ERROR,
    RUNTIME,
    Outcome,
    Timing,
    last_line,
    timed,
)
from tlp_tvm.measuring.cooling import FLUSH
from tlp_tvm.measuring.fleet import Fleet

NO_DEVICE, BUSY = 100, 101
"""Not of TVM: the device that the tracker gave does not answer, or all are in use; no program was tried."""

_POLL_S = 1.0
"""How long one call of `connect` waits at most."""

_queue = ThreadPoolExecutor(1)
_session: Future[Any] | None = None


def build(path: str, serialized: Serialized) -> Outcome:
    """Compile a program into a library that its device can load, and note its arguments beside it.

    Args:
        path: of the library, a .tar.
        serialized: the program.
    """
    began = time.monotonic()
    program, error, message = compiled(serialized)
    if program is None:
        return Outcome((), error, message, time.monotonic() - began)
    try:
        program.module.export_library(path)
        arguments = [(tensor.op.name, shape_of(tensor), str(tensor.dtype)) for tensor in program.tensors]
        Path(f"{path}.json").write_text(json.dumps(arguments), encoding="utf-8")
    except Exception:  # noqa: BLE001 - whatever goes wrong with one program costs that program only
        return Outcome((), COMPILE, last_line(), time.monotonic() - began)
    return Outcome((), NO_ERROR, "", time.monotonic() - began)


def connect(fleet: Fleet, seconds: float) -> Outcome:
    """Queue for a device of a fleet, and have a session with it for the next `run`.

    Asked again after `BUSY`, it keeps its place in the queue.

    Args:
        fleet: whose devices may do it.
        seconds: after which the device ends the session.
    """
    global _session
    began = time.monotonic()
    if _session is None:
        _session = _queue.submit(_request, fleet, seconds)
    try:
        _session.result(_POLL_S)
    except TimeoutError:
        if not _session.done():
            return Outcome((), BUSY, "all devices are in use", time.monotonic() - began)
        _session = None
        return Outcome((), NO_DEVICE, last_line(), time.monotonic() - began)
    except Exception:  # noqa: BLE001 - TVM raises many kinds
        _session = None
        return Outcome((), NO_DEVICE, last_line(), time.monotonic() - began)
    return Outcome((), NO_ERROR, "", time.monotonic() - began)


def _request(fleet: Fleet, seconds: float) -> Any:
    import tvm

    tracker = tvm.rpc.connect_tracker(fleet.host, fleet.port)
    return tracker.request(fleet.key, session_timeout=seconds, max_retry=1)


def run(path: str, kind: str, timing: Timing, inputs: dict[str, Any]) -> Outcome:
    """Let the device of the session that `connect` opened time a library; the session ends with it.

    Args:
        path: that `build` wrote.
        kind: of the target: "llvm", "cuda".
        timing: how; `realtime` is the device's own affair.
        inputs: arrays by placeholder name, for inputs that may not be random.
    """
    global _session
    began = time.monotonic()
    import tvm

    try:
        assert _session is not None
        session, _session = _session.result(), None
        name = Path(path).name
        session.upload(path)
        module, device = session.load_module(name), session.device(kind, 0)
        fill = session.get_function("tvm.contrib.random.random_fill")
        arrays = []
        for argument, shape, dtype in json.loads(Path(f"{path}.json").read_text(encoding="utf-8")):
            if argument in inputs:
                arrays.append(tvm.nd.array(inputs[argument], device))
                continue
            arrays.append(tvm.nd.empty(shape, dtype, device))
            fill(arrays[-1])
        cool = FLUSH if timing.caches == COLD and kind == "llvm" else ""
        costs = timed(module, device, arrays, replace(timing, realtime=False), cool)
        session.remove(name)
        session.remove(name.removesuffix(".tar") + ".so")
    except Exception:  # noqa: BLE001
        return Outcome((), RUNTIME, last_line(), time.monotonic() - began)
    return Outcome(costs, NO_ERROR, "", time.monotonic() - began)


def temporary_library(folder: str) -> str:
    """A name for a library that no other has, as a device keeps those of all collections in one place."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix="tlp-", suffix=".tar", delete=False) as file:
        return file.name


def shape_of(tensor: Any) -> list[int]:
    """Extents of a tensor of TVM."""
    return [int(extent) for extent in tensor.shape]
