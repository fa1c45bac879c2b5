"""Work of a measuring process with MetaSchedule's programs: compile, keep, time on request.

Children are TVM's own popen workers, which import this module by name; it must stay light.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlp_tvm.measuring.child import COLD, COMPILE, NO_ERROR, Outcome, Timing, last_line, run_kept, timed
from tlp_tvm.measuring.code_kinds import PLAIN, POLYNOMIALS
from tlp_tvm.measuring.cooling import cooling

_NO_CSE = {"tirx.disable_cse_tir": True}
"""LLVM does the same again."""

_APART = 7919
"""Between ids that follow each other, so that they are spread over a table."""

_KEPT_BYTES = 1 << 30
"""Of arrays that wait for the next program of the same shapes; filling new ones takes longer than timing."""


@dataclass(frozen=True)
class Serialized:
    """A program on its way to a child.

    Attributes:
        module: the scheduled IRModule, as TVM's JSON.
        target: TVM's target, as JSON.
        arguments: shape and type of each argument.
        weights: places among the arguments of those that a network keeps constant.
        code: how it becomes machine code, as `measuring.pool.MeasureSettings` has it.
    """

    module: str
    target: str
    arguments: tuple[tuple[tuple[int, ...], str], ...]
    weights: tuple[int, ...] = ()
    code: str = PLAIN


@dataclass(frozen=True)
class _Program:
    module: Any
    sent: Serialized
    kind: str


_programs: dict[int, _Program] = {}
_arrays: dict[tuple[Any, ...], Any] = {}


def build(number: int, program: Serialized) -> Outcome:
    """Compile a program and keep it.

    Args:
        number: to ask for it later.
        program: what to compile.
    """
    import tvm
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    from tlp_tvm.metaschedule.compiling.building import way
    from tlp_tvm.metaschedule.loading.loops import share_loops_of
    from tlp_tvm.metaschedule.loading.polynomials import use_polynomials
    from tlp_tvm.metaschedule.loading.targets import target_from_json

    if POLYNOMIALS in program.code:
        use_polynomials()
    share_loops_of(tvm)
    began = time.monotonic()
    try:
        target = target_from_json(program.target)
        with tvm.transform.PassContext(config=_NO_CSE):
            scheduled = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(
                tvm.ir.load_json(program.module)
            )
            module = tvm.tirx.build(scheduled, target=target, pipeline=way(tvm, target, program.code))
            _ = module[module.entry_name]  # LLVM compiles at the first look
    except Exception:  # noqa: BLE001 - whatever a program does costs that program only
        return Outcome((), COMPILE, last_line(), time.monotonic() - began)
    _programs[number] = _Program(module, program, str(target.kind.name))
    return Outcome((), NO_ERROR, "", time.monotonic() - began)


def run(number: int, timing: Timing, task: str, again: bool) -> Outcome | None:
    """Time a program; forget it, unless it is to be timed again.

    Args:
        number: as given to `build`.
        timing: how.
        task: whose program it is.
        again: whether it will be timed again if it is doubtful.

    Returns:
        None if this child does not have the program, as it replaces the one that had.
    """
    import tvm
    from tvm_ffi import register_global_func

    from tlp_tvm.metaschedule.loading.targets import device_of

    def costs_of(program: _Program, timing: Timing) -> tuple[float, ...]:
        device = device_of(program.kind)
        cool = ""
        if timing.caches == COLD and program.kind == "llvm":
            cool = cooling(program.sent.weights, tvm.get_global_func, register_global_func)
        return timed(program.module, device, _arrays_of(program, device), timing, cool)

    return run_kept(_programs, number, costs_of, timing, task, again)


def _arrays_of(program: _Program, device: Any) -> list[Any]:
    """Arguments of a program: random numbers, or valid ids; kept for the next one with the same shapes."""
    import tvm

    least = least_extent(program.sent.arguments)
    fill = tvm.get_global_func("tvm.contrib.random.random_fill_for_measure")
    if sum(4 * math.prod(shape) for _, shape, *_ in _arrays) > _KEPT_BYTES:
        _arrays.clear()
    arrays = []
    for i, (shape, dtype) in enumerate(program.sent.arguments):
        integers = "int" in dtype
        key = (i, shape, dtype, program.kind, least if integers else 0)
        if key not in _arrays:
            _arrays[key] = array = tvm.runtime.empty(shape, dtype, device)
            if integers:
                ids = np.arange(math.prod(shape)) * _APART % least
                array.copyfrom(ids.reshape(shape).astype(dtype))
            else:
                fill(array)
        arrays.append(_arrays[key])
    device.sync()
    return arrays


def least_extent(arguments: tuple[tuple[tuple[int, ...], str], ...]) -> int:
    """Below what any number is a valid id in any of a program's tables, whatever it looks up there.

    Args:
        arguments: shape and type of each.
    """
    return min((extent for shape, dtype in arguments if "int" not in dtype for extent in shape), default=1)
