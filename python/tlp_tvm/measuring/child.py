"""What a measuring child does: compile a program just in time, keep it, time it when asked.

Children are TVM's own popen workers, which import this module by name; it must stay light. A program stays in
the child that compiled it, so nothing is linked, written to disk or loaded again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tlp_tvm.latency import latency_of_costs
from tlp_tvm.measuring.yardstick import Yardsticks

NO_ERROR, INSTANTIATION, COMPILE, RUNTIME = 0, 1, 2, 4
"""TVM's `MeasureErrorNo`."""

_ORPHAN_POLL_S = 0.5

_NO_CSE = {"tir.disable_cse_tir": True}
"""TVM's elimination of common subexpressions takes half of the time to compile and more, and LLVM does the
same again: programs are as fast without (`benchmarks/measuring.py` compares)."""

_PAUSE = 0.15
"""Share of its time that a timing at a real-time priority waits afterwards; see `_undisturbed`."""

_KEPT_BYTES = 1 << 30
"""Of arrays that wait for the next program of the same shapes; filling new ones takes longer than timing."""


T = TypeVar("T")


@dataclass(frozen=True)
class Timing:
    """How a compiled program is timed.

    Attributes:
        repeat: timings, after a run that is not timed.
        min_repeat_ms: each timing repeats the program until this much time has passed.
        once_above_ms: a program that takes longer than this is timed for one run alone.
        realtime: whether nothing else runs on a core that times (needs the right to a real-time priority).
    """

    repeat: int = 3
    min_repeat_ms: int = 20
    once_above_ms: float = 150.0
    realtime: bool = False


@dataclass(frozen=True)
class Outcome:
    """What happened to one program in a child.

    Attributes:
        costs: seconds a run, one for each repeat; empty after a build or an error.
        error: TVM's error number.
        message: the last line of the error.
        seconds: spent on it.
        doubtful: whether the machine was slower than before while it was timed; the child still has it.
    """

    costs: tuple[float, ...]
    error: int
    message: str
    seconds: float
    doubtful: bool = False


@dataclass(frozen=True)
class Program:
    """A compiled program.

    Attributes:
        module: TVM's, compiled.
        tensors: its arguments.
        kind: of its target: "llvm", "cuda".
    """

    module: Any
    tensors: list[Any]
    kind: str


_programs: dict[int, Program] = {}
_arrays: dict[tuple[Any, ...], Any] = {}
_yardsticks = Yardsticks()


def start(parent: int, threads: int) -> None:
    """Prepare a fresh child.

    Args:
        parent: process id to live and die with.
        threads: of measured programs.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    os.environ["TVM_NUM_THREADS"] = str(threads)  # read when the first parallel loop runs
    with contextlib.suppress(OSError):  # where memory runs out, a child shall go first
        Path("/proc/self/oom_score_adj").write_text("1000")


def build(number: int, serialized: Any) -> Outcome:
    """Compile a program and keep it.

    Args:
        number: to ask for it later.
        serialized: `MeasureInput.serialize()`.
    """
    began = time.time()
    program, error, message = compiled(serialized)
    if program is not None:
        _programs[number] = program
    return Outcome((), error, message, time.time() - began)


def run(number: int, inputs: dict[str, Any], timing: Timing, task: str, again: bool) -> Outcome | None:
    """Time a program; forget it, unless it is to be timed again.

    Args:
        number: as given to `build`.
        inputs: arrays by placeholder name, for inputs that may not be random.
        timing: how.
        task: whose program it is.
        again: whether it will be timed again if it is doubtful.

    Returns:
        None if this child does not have the program, as it replaces the one that had.
    """

    def costs_of(program: Program, timing: Timing) -> tuple[float, ...]:
        device = _device_of(program)
        return timed(program.module, device, _arrays_of(program, device, inputs), timing)

    return run_kept(_programs, number, costs_of, timing, task, again)


def run_kept(
    programs: dict[int, T],
    number: int,
    costs_of: Callable[[T, Timing], tuple[float, ...]],
    timing: Timing,
    task: str,
    again: bool,
) -> Outcome | None:
    """Time a program that a child has kept.

    Args:
        programs: that it has; loses this one, unless it is doubtful.
        number: of the program.
        costs_of: times it: seconds of each repeat.
        timing: how.
        task: whose program it is.
        again: whether it will be timed again if it is doubtful.

    Returns:
        None if it does not have the program.
    """
    began = time.time()
    program = programs.pop(number, None)
    if program is None:
        return None
    once = dataclasses.replace(timing, repeat=1)
    doubtful = False
    try:
        costs = costs_of(program, timing)
        _yardsticks.note(task, costs, lambda: latency_of_costs(costs_of(program, once)))
        if again and min(costs) * 1e3 <= timing.once_above_ms:
            doubtful = _yardsticks.doubtful(task, costs)
    except Exception:  # noqa: BLE001 - whatever a generated program does costs that program only
        return Outcome((), RUNTIME, last_line(), time.time() - began)
    if doubtful:
        programs[number] = program
    return Outcome(costs, NO_ERROR, "", time.time() - began, doubtful)


def wait(task: str, seconds: float) -> None:
    """Wait while the machine is far slower than it was.

    Args:
        task: whose fastest program tells.
        seconds: to wait at most.
    """
    _yardsticks.wait(task, seconds)


def compiled(serialized: Any) -> tuple[Program | None, int, str]:
    """Compile a program.

    Args:
        serialized: `MeasureInput.serialize()`.

    Returns:
        The program, or None, TVM's error number and the last line of the error.
    """
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
        return None, INSTANTIATION, last_line()
    try:
        with tvm.transform.PassContext(config=_pass_config()):
            module = tvm.build(schedule, tensors, target=tvm.target.Target(target, host))
            _ = module[module.entry_name]  # LLVM compiles at the first look
    except Exception:  # noqa: BLE001
        return None, COMPILE, last_line()
    return Program(module, list(tensors), str(target.kind.name)), NO_ERROR, ""


@functools.cache
def _pass_config() -> dict[str, Any]:
    """What of `_NO_CSE` this TVM knows; old ones have no such pass."""
    import tvm

    known = tvm.transform.PassContext.list_configs()
    return {name: value for name, value in _NO_CSE.items() if name in known}


def _arrays_of(program: Program, device: Any, inputs: dict[str, Any]) -> list[Any]:
    """Arguments of a program: random, kept for the next program with the same shapes."""
    import tvm

    fill = tvm.get_global_func("tvm.contrib.random.random_fill")
    if sum(_bytes_of(*key[:2]) for key in _arrays) > _KEPT_BYTES:
        _arrays.clear()
    arrays = []
    for i, tensor in enumerate(program.tensors):
        if tensor.op.name in inputs:
            arrays.append(tvm.nd.array(inputs[tensor.op.name], device))
            continue
        key = (tvm.auto_scheduler.utils.get_const_tuple(tensor.shape), str(tensor.dtype), i)
        if key not in _arrays:
            _arrays[key] = tvm.nd.empty(*key[:2], device)
            fill(_arrays[key])
        arrays.append(_arrays[key])
    device.sync()
    return arrays


def _bytes_of(shape: tuple[int, ...], dtype: str) -> int:
    import numpy as np

    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize


def timed(module: Any, device: Any, arrays: list[Any], timing: Timing) -> tuple[float, ...]:
    """Run a program over and over.

    Args:
        module: TVM's, here or on a remote device.
        device: where its arguments are.
        arrays: its arguments.
        timing: how.

    Returns:
        Seconds a run, one for each repeat.
    """
    entry = module[module.entry_name]

    def run_once() -> float:
        with _undisturbed(timing.realtime):
            began = time.perf_counter()
            entry(*arrays)
            device.sync()
            return time.perf_counter() - began

    for _ in range(2):  # only the second counts
        once = run_once()
        if once * 1e3 <= timing.once_above_ms:
            break
    else:
        return (once,)
    if timing.realtime and once * 1e3 > timing.min_repeat_ms:
        return tuple(run_once() for _ in range(timing.repeat))
    timer = module.time_evaluator(
        module.entry_name, device, number=1, repeat=timing.repeat, min_repeat_ms=timing.min_repeat_ms
    )
    with _undisturbed(timing.realtime):
        return tuple(float(cost) for cost in timer(*arrays).results)


def _device_of(program: Program) -> Any:
    import tvm

    return tvm.device(program.kind, 0)


@contextlib.contextmanager
def _undisturbed(realtime: bool) -> Iterator[None]:
    """A real-time priority for all threads of this process, and a pause after it, if asked for.

    All threads: TVM's pool may be there already, and a main thread that waits for a worker of a lower
    priority on the same core keeps it from running. Linux stops all that runs at such a priority for 50 ms
    once it has had 950 of 1,000 ms, in the middle of whatever is being timed.
    """
    if not realtime:
        yield
        return
    began = time.perf_counter()
    _schedule_all(os.SCHED_FIFO, 1)
    try:
        yield
    finally:
        _schedule_all(os.SCHED_OTHER, 0)
        time.sleep(_PAUSE * (time.perf_counter() - began))


def _schedule_all(policy: int, priority: int) -> None:
    """Give every thread of this process a priority; those that start later have that of who starts them."""
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread that ends meanwhile
            os.sched_setscheduler(int(thread.name), policy, os.sched_param(priority))


def realtime_allowed() -> bool:
    """Whether this process may ask for the priority that `Timing.realtime` is about."""
    try:
        with _undisturbed(True):
            return True
    except PermissionError:
        return False


def last_line() -> str:
    """Of the traceback of the error that is being handled."""
    lines = [line for line in traceback.format_exc().splitlines() if line.strip()]
    return lines[-1].strip()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even in the middle of a program that runs for ever."""
    while os.getppid() == parent:
        time.sleep(_ORPHAN_POLL_S)
    os._exit(1)
