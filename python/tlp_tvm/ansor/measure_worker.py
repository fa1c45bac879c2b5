"""What a measuring child does: compile a program just in time, keep it, time it when asked.

Children are TVM's own popen workers, which import this module by name; it must stay light. A program stays in
the child that compiled it, so nothing is linked, written to disk or loaded again.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from typing import Any

NO_ERROR, INSTANTIATION, COMPILE, RUNTIME = 0, 1, 2, 4
"""TVM's `MeasureErrorNo`."""

_ORPHAN_POLL_S = 0.5


@dataclass(frozen=True)
class Outcome:
    """What happened to one program in a child.

    Attributes:
        costs: seconds a run, one for each repeat; empty after a build or an error.
        error: TVM's error number.
        message: the last line of the error.
        seconds: spent on it.
    """

    costs: tuple[float, ...]
    error: int
    message: str
    seconds: float


@dataclass(frozen=True)
class _Program:
    module: Any
    tensors: list[Any]
    device: Any


_programs: dict[int, _Program] = {}


def start(parent: int, threads: int) -> None:
    """Prepare a fresh child.

    Args:
        parent: process id to live and die with.
        threads: of measured programs.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    os.environ["TVM_NUM_THREADS"] = str(threads)  # read when the first parallel loop runs


def build(number: int, serialized: Any) -> Outcome:
    """Compile a program and keep it.

    Args:
        number: to ask for it later.
        serialized: `MeasureInput.serialize()`.
    """
    began = time.time()
    error, message = _build(number, serialized)
    return Outcome((), error, message, time.time() - began)


def run(number: int, inputs: dict[str, Any], repeat: int, min_repeat_ms: int) -> Outcome | None:
    """Time a program and forget it.

    Args:
        number: as given to `build`.
        inputs: arrays by placeholder name, for inputs that may not be random.
        repeat: timings, after one run that is not timed.
        min_repeat_ms: each timing repeats the program until this much time has passed.

    Returns:
        None if this child does not have the program, as it replaces the one that had.
    """
    began = time.time()
    program = _programs.pop(number, None)
    if program is None:
        return None
    try:
        costs = _time(program, inputs, repeat, min_repeat_ms)
    except Exception:  # noqa: BLE001 - whatever a generated program does costs that program only
        return Outcome((), RUNTIME, _last_line(), time.time() - began)
    return Outcome(costs, NO_ERROR, "", time.time() - began)


def _build(number: int, serialized: Any) -> tuple[int, str]:
    import tvm
    from tvm.auto_scheduler.measure import MeasureInput

    measure_input = MeasureInput.deserialize(serialized)
    task = measure_input.task
    target, host = tvm.target.Target.canon_target_and_host(task.target, task.target_host)
    try:
        schedule, tensors = task.compute_dag.apply_steps_from_state(
            measure_input.state, layout_rewrite=task.layout_rewrite_option
        )
    except Exception:  # noqa: BLE001
        return INSTANTIATION, _last_line()
    try:
        with tvm.transform.PassContext():
            module = tvm.build(schedule, tensors, target=tvm.target.Target(target, host))
            _ = module[module.entry_name]  # LLVM compiles at the first look
    except Exception:  # noqa: BLE001
        return COMPILE, _last_line()
    _programs[number] = _Program(module, list(tensors), tvm.device(str(target.kind.name), 0))
    return NO_ERROR, ""


def _time(program: _Program, inputs: dict[str, Any], repeat: int, min_repeat_ms: int) -> tuple[float, ...]:
    import tvm

    fill = tvm.get_global_func("tvm.contrib.random.random_fill")
    arrays = []
    for tensor in program.tensors:
        if tensor.op.name in inputs:
            arrays.append(tvm.nd.array(inputs[tensor.op.name], program.device))
            continue
        shape = tvm.auto_scheduler.utils.get_const_tuple(tensor.shape)
        arrays.append(tvm.nd.empty(shape, tensor.dtype, program.device))
        fill(arrays[-1])
    program.device.sync()
    timer = program.module.time_evaluator(
        program.module.entry_name, program.device, number=1, repeat=repeat, min_repeat_ms=min_repeat_ms
    )
    return tuple(float(cost) for cost in timer(*arrays).results)


def _last_line() -> str:
    lines = [line for line in traceback.format_exc().splitlines() if line.strip()]
    return lines[-1].strip()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even in the middle of a program that runs for ever."""
    while os.getppid() == parent:
        time.sleep(_ORPHAN_POLL_S)
    os._exit(1)
