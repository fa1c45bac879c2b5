"""Random programs of a task: its design space with every decision made anew."""

from __future__ import annotations

from typing import Any

from tlp_tvm.errors import TuningError
from tlp_tvm.metaschedule.loading.locate import load_tvm


def sample_traces(mod: Any, target: Any, count: int, *, seed: int = 0, space: Any = None) -> list[Any]:
    """Sample programs as a search would begin with, before postprocessors; no device is needed.

    Args:
        mod: a PrimFunc, or an IRModule with one.
        target: of `tvm.target.Target`, or what makes one, e.g. {"kind": "llvm", "num-cores": 2}.
        count: how many.
        seed: of the decisions, the same programs for the same seed.
        space: a space generator of MetaSchedule; None for TVM's own for the target.

    Returns:
        `count` schedules with their traces, design after design in turns.

    Raises:
        TuningError: the task has no design space.
    """
    tvm = load_tvm()
    from tvm.s_tir import Schedule, Trace
    from tvm.s_tir import meta_schedule as ms

    context = ms.TuneContext(
        mod=mod,
        target=tvm.target.Target(target),
        space_generator=space or "post-order-apply",
        search_strategy="replay-trace",
        task_name="sampled",
        rand_state=1 + seed,
        num_threads=1,
    )
    designs = context.generate_design_space()
    # A design without instructions is a program that nothing can be done to.
    undecided = [Trace(design.trace.insts, {}) for design in designs]
    if not undecided:
        raise TuningError("expected a task with a design space, found none; give a space for its target")
    programs: list[Any] = []
    for number in range(count):
        program = Schedule(context.mod, seed=1 + seed * 1_000_003 + number)
        undecided[number % len(undecided)].apply_to_schedule(program, remove_postproc=False)
        programs.append(program)
    return programs
