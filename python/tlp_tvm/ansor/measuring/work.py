"""Work of a measuring process with Ansor's programs: compile just in time, keep, time on request."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tlp_tvm.ansor.compiling.kept_code import Code, arguments_of
from tlp_tvm.ansor.compiling.newer_llvm import bitcode_of, compiled_newly, is_newer, unoptimised
from tlp_tvm.ansor.compiling.pass_settings import of_a_program
from tlp_tvm.ansor.compiling.weight_places import layout_free
from tlp_tvm.ansor.loading.loops import share_loops_of
from tlp_tvm.measuring.child import (
    COLD,
    COMPILE,
    INSTANTIATION,
    NO_ERROR,
    Outcome,
    Timing,
    last_line,
    run_kept,
    timed,
)
from tlp_tvm.measuring.code_kinds import FOLDED
from tlp_tvm.measuring.cooling import cooling

_BATCHED = 3
"""Axes of the operands of a batched product."""

_KEPT_BYTES = 1 << 30
"""Of arrays that wait for the next program of the same shapes; filling new ones takes longer than timing."""


@dataclass(frozen=True)
class Program:
    """A compiled program.

    Attributes:
        module: TVM's, compiled.
        tensors: its arguments.
        kind: of its target: "llvm", "cuda".
        weights: places among the arguments of those that a network keeps constant.
        code: what a network can be linked with; None where TVM's own LLVM compiled it.
    """

    module: Any
    tensors: list[Any]
    kind: str
    weights: tuple[int, ...] = ()
    code: Code | None = None


class Serialized(NamedTuple):
    """A program on its way to a child.

    Attributes:
        measure_input: `MeasureInput.serialize()`.
        code: how it becomes machine code, as `measuring.pool.MeasureSettings` has it.
        name: of its function.
    """

    measure_input: Any
    code: str = FOLDED
    name: str = "default_function"


_programs: dict[int, Program] = {}
_arrays: dict[tuple[Any, ...], Any] = {}


def build(number: int, serialized: Serialized) -> Outcome:
    """Compile a program and keep it.

    Args:
        number: to ask for it later.
        serialized: the program.
    """
    began = time.monotonic()
    program, error, message = compiled(serialized)
    if program is None:
        return Outcome((), error, message, time.monotonic() - began)
    _programs[number] = dataclasses.replace(program, code=None)
    return Outcome((), error, message, time.monotonic() - began, code=program.code)


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
    import tvm

    def costs_of(program: Program, timing: Timing) -> tuple[float, ...]:
        device = _device_of(program)
        cool = ""
        if timing.caches == COLD and program.kind == "llvm":
            cool = cooling(program.weights, tvm.get_global_func, tvm.register_func)
        return timed(program.module, device, _arrays_of(program, device, inputs), timing, cool)

    return run_kept(_programs, number, costs_of, timing, task, again)


def compiled(serialized: Serialized) -> tuple[Program | None, int, str]:
    """Compile a program.

    Args:
        serialized: the program.

    Returns:
        The program, or None, TVM's error number and the last line of the error.
    """
    import tvm
    from tvm.auto_scheduler.measure import MeasureInput

    share_loops_of(tvm)
    measure_input = MeasureInput.deserialize(serialized.measure_input)
    task = measure_input.task
    target, host = tvm.target.Target.canon_target_and_host(task.target, task.target_host)
    try:
        schedule, tensors = task.compute_dag.apply_steps_from_state(
            measure_input.state, layout_rewrite=task.layout_rewrite_option
        )
    except Exception:  # noqa: BLE001
        return None, INSTANTIATION, last_line()
    try:
        kind = str(target.kind.name)
        newly = kind == "llvm" and is_newer(serialized.code)
        settings = of_a_program(tvm, target, serialized.code)
        with tvm.transform.PassContext(**settings):
            built_for = unoptimised(tvm, target) if newly else tvm.target.Target(target, host)
            module = tvm.build(schedule, tensors, target=built_for, name=serialized.name)
            code = None
            if newly:
                module, built = compiled_newly(tvm, bitcode_of(module))
                code = Code(serialized.name, built, arguments_of(tensors))
            _ = module[module.entry_name]  # LLVM compiles at the first look
    except Exception:  # noqa: BLE001
        return None, COMPILE, last_line()
    weights = weights_of(task.compute_dag)
    return Program(module, list(tensors), str(target.kind.name), weights, code), NO_ERROR, ""


def weights_of(dag: Any) -> tuple[int, ...]:
    """Which arguments of a task are weights: those that TVM may lay out anew.

    TVM says so of the second operand of a batched product too, which is an activation in networks; it has
    three axes, and weights have two or four.

    Args:
        dag: `auto_scheduler.ComputeDAG`.

    Returns:
        Places among its tensors.
    """
    free = [tensor for tensor in layout_free(dag) if len(tensor.shape) != _BATCHED]
    return tuple(i for i, tensor in enumerate(dag.tensors) if any(map(tensor.same_as, free)))


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
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize


def _device_of(program: Program) -> Any:
    import tvm

    return tvm.device(program.kind, 0)
