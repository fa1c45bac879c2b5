"""Programs with every kind of step, for the self-check: three by hand, and random ones of small tasks."""

from __future__ import annotations

from typing import Any

from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states

_SAMPLED = {"dense": 24, "softmax": 24}
"""Operators that are cheap to sample, and how many programs of each."""


def probe_states(tvm: Any) -> list[tuple[Any, list[Any]]]:
    """Programs that together have all 14 kinds of steps, with different numbers in the fields of each step.

    Args:
        tvm: the module.

    Returns:
        Pairs of `auto_scheduler.SearchTask` and states (`auto_scheduler.loop_state.StateObject`) of it.
    """
    by_hand = _task_by_hand(tvm)
    made = [make(by_hand.compute_dag) for make in (_tiled_for_cpu, _factored, _tiled_for_gpu)]
    probes = [(by_hand, [state.state_object for state in made])]
    for name, count in _SAMPLED.items():
        task = operator_task(name, "llvm -num-cores=2")
        probes.append((task, sample_states(task, count)))
    return probes


def _task_by_hand(tvm: Any) -> Any:
    """D = 2 * ((A + 1) @ B): stages A 0, pre 1, B 2, C 3, D 4."""
    te, auto_scheduler = tvm.te, tvm.auto_scheduler
    a = te.placeholder((512, 64), name="A")
    b = te.placeholder((64, 96), name="B")
    k = te.reduce_axis((0, 64), name="k")
    pre = te.compute((512, 64), lambda i, j: a[i, j] + 1.0, name="pre")
    c = te.compute((512, 96), lambda i, j: te.sum(pre[i, k] * b[k, j], axis=[k]), name="C")
    d = te.compute((512, 96), lambda i, j: c[i, j] * 2.0, name="D")
    tensors = [a, b, d]
    dag = auto_scheduler.ComputeDAG(tensors)
    key = auto_scheduler.workload_registry.register_workload_tensors(dag.workload_key(), tensors)
    return auto_scheduler.SearchTask(compute_dag=dag, workload_key=key, target="llvm -num-cores=2")


def _iterators(state: Any, stage: int, places: tuple[int, ...]) -> list[Any]:
    return [state.stages[stage].iters[place] for place in places]


def _tiled_for_cpu(dag: Any) -> Any:
    """CI, SP (from either side, and of an unknown extent), RE, FSP, CA, FU, AN, PR, CR."""
    pre, c, d = 1, 3, 4
    state = dag.get_init_state()
    state.compute_inline(pre)
    state.split(d, state.stages[d].iters[0], [4, 2])
    state.split(d, state.stages[d].iters[3], [8, 2], inner_to_outer=False)
    state.reorder(d, _iterators(state, d, (0, 3, 1, 4, 2, 5)))
    state.follow_split(c, state.stages[c].iters[0], src_step_id=1, n_split=2)
    state.compute_at(c, d, state.stages[d].iters[1])
    state.split(c, state.stages[c].iters[4], [16])
    state.parallel(d, state.fuse(d, _iterators(state, d, (0, 1))))
    state.vectorize(d, state.stages[d].iters[4])
    state.unroll(c, state.stages[c].iters[5])
    state.pragma(c, state.stages[c].iters[0], "auto_unroll_max_step$512")
    state.compute_root(c)
    return state


def _factored(dag: Any) -> Any:
    """SP, RF."""
    c = 3
    state = dag.get_init_state()
    state.split(c, state.stages[c].iters[2], [16])
    state.rfactor(c, state.stages[c].iters[3], factor_iter_id=2)
    return state


def _tiled_for_gpu(dag: Any) -> Any:
    """CHW, CHR, SP, RE, FU, AN (blocks, virtual and real threads), FFSP, SA."""
    b, c = 2, 3
    state = dag.get_init_state()
    state.cache_write(c, "local")
    state.cache_read(b, "shared", [c])
    shared, c = 3, 5
    state.split(c, state.stages[c].iters[0], [8, 4, 2])
    state.split(c, state.stages[c].iters[4], [2, 3, 16])
    state.reorder(c, _iterators(state, c, (0, 4, 1, 5, 2, 6, 3, 7)))
    for place, thread in enumerate(("blockIdx.x", "vthread", "threadIdx.x")):
        state.bind(c, state.fuse(c, _iterators(state, c, (place, place + 1))), thread)
    fused = state.fuse(shared, _iterators(state, shared, (0, 1)))
    state.follow_fused_split(shared, fused, src_step_ids=[2, 3], level=1, factor_or_nparts=True)
    state.storage_align(shared, state.stages[shared].iters[0], factor=32, offset=8)
    return state
