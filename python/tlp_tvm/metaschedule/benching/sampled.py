"""Candidates for MetaSchedule's benchmarks."""

from __future__ import annotations

from typing import Any

TARGET_KINDS = ("llvm", "cuda")
"""Keys of `tlp_tvm.metaschedule.networks.workloads.TARGETS`; "cuda" needs no GPU."""


def candidates(task_name: str, kind: str, count: int, *, seed: int) -> tuple[Any, Any]:
    """A tuning context of the task, and an Array of random `MeasureCandidate`s as in the search.

    Args:
        task_name: one of `tlp_tvm.metaschedule.networks.workloads.WORKLOADS`.
        kind: one of `TARGET_KINDS`.
        count: number of candidates.
        seed: of their decisions.
    """
    from tlp_tvm.metaschedule.loading.locate import load_tvm
    from tlp_tvm.metaschedule.networks.workloads import TARGETS, workload
    from tlp_tvm.metaschedule.search.sampling import sample_traces

    tvm = load_tvm()
    from tvm.s_tir import meta_schedule as ms
    from tvm_ffi import Array

    mod, target = workload(task_name), tvm.target.Target(TARGETS[kind])
    context = ms.TuneContext(mod=mod, target=target, task_name=task_name, num_threads=1)
    programs = sample_traces(mod, target, count, seed=seed)
    return context, Array([ms.MeasureCandidate(program, []) for program in programs])
