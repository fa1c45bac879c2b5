"""Work of a process for a remote device: compile a program into a file and have the device time it.

As in `work`, children import this module by name; it must stay light.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.measuring.work import compiled
from tlp_tvm.measuring.child import COMPILE, NO_ERROR, RUNTIME, Outcome, Timing, last_line, timed
from tlp_tvm.measuring.fleet import Fleet

NO_DEVICE = 100
"""Not of TVM: the tracker gave no device, so the program has not been tried."""


def build(path: str, serialized: Any) -> Outcome:
    """Compile a program into a library that its device can load, and note its arguments beside it.

    Args:
        path: of the library, a .tar.
        serialized: `MeasureInput.serialize()`.
    """
    began = time.time()
    program, error, message = compiled(serialized)
    if program is None:
        return Outcome((), error, message, time.time() - began)
    try:
        program.module.export_library(path)
        arguments = [(tensor.op.name, shape_of(tensor), str(tensor.dtype)) for tensor in program.tensors]
        Path(f"{path}.json").write_text(json.dumps(arguments), encoding="utf-8")
    except Exception:  # noqa: BLE001 - whatever goes wrong with one program costs that program only
        return Outcome((), COMPILE, last_line(), time.time() - began)
    return Outcome((), NO_ERROR, "", time.time() - began)


def run(
    path: str, kind: str, fleet: Fleet, timing: Timing, seconds: float, inputs: dict[str, Any]
) -> Outcome:
    """Let one device of a fleet time a library.

    Args:
        path: that `build` wrote.
        kind: of the target: "llvm", "cuda".
        fleet: whose devices may do it.
        timing: how; `realtime` is the device's own affair.
        seconds: after which the device ends the session.
        inputs: arrays by placeholder name, for inputs that may not be random.
    """
    began = time.time()
    import tvm

    try:
        tracker = tvm.rpc.connect_tracker(fleet.host, fleet.port)
        session = tracker.request(fleet.key, session_timeout=seconds, max_retry=1)
    except Exception:  # noqa: BLE001
        return Outcome((), NO_DEVICE, last_line(), time.time() - began)
    try:
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
        costs = timed(module, device, arrays, replace(timing, realtime=False))
        session.remove(name)
        session.remove(name.removesuffix(".tar") + ".so")
    except Exception:  # noqa: BLE001
        return Outcome((), RUNTIME, last_line(), time.time() - began)
    return Outcome(costs, NO_ERROR, "", time.time() - began)


def temporary_library(folder: str) -> str:
    """A name for a library that no other has, as a device keeps those of all collections in one place."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix="tlp-", suffix=".tar", delete=False) as file:
        return file.name


def shape_of(tensor: Any) -> list[int]:
    """Extents of a tensor of TVM."""
    return [int(extent) for extent in tensor.shape]
