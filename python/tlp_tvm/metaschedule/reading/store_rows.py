"""TVM's per-store features of MetaSchedule's programs; for recorded ones, networks are split again.

They are the 164 numbers of a store that Ansor has, of the scheduled function without the layout of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.errors import NetworkError, TuningError
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.metaschedule.graph.fusing import without_weights
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.builtin import is_file
from tlp_tvm.metaschedule.networks.planning import plan_tasks
from tlp_tvm.metaschedule.reading.traces import applied
from tlp_tvm.metaschedule.reading.workload_key import workload_key
from tlp_tvm.model.trees.store_trees import stacked
from tlp_tvm.planned_task import most_wanted

_FORMS: tuple[Mapping[str, bool], ...] = ({}, {"usual": True}, {"usual": True, "earlier": True})
"""How networks of files are split into tasks, and were until commits 56b81db and 70e24c2; attention was as in
the second form for longer."""


def rebuilt_modules(
    tasks: Mapping[str, Mapping[str, int]], target: Any, tell: Callable[[str], None]
) -> Iterator[tuple[str, Any]]:
    """Split networks into tasks until all are there that are looked for; that takes minutes.

    Args:
        tasks: workload key -> the networks that have it, built-in names or files; what to look for.
        target: TVM's.
        tell: receives a line before each step.

    Yields:
        A workload key and the IRModule that it names, each once; those of networks that are neither are left
        out.
    """
    wanted = dict(tasks)
    tried: set[str] = set()
    while network := most_wanted(wanted.values(), tried):
        tried.add(network)
        tell(f"per-store features: splitting {network} into tasks, {len(wanted)} still to be found")
        for form in _FORMS if is_file(network) else _FORMS[:1]:
            for module in _modules_of(network, target, form):
                if wanted.pop(key := workload_key(module), None) is not None:
                    yield key, module
            if not any(network in networks for networks in wanted.values()):
                break


def _modules_of(network: str, target: Any, form: Mapping[str, bool]) -> Iterator[Any]:
    """Tasks of a network, in each form that records may have; none where it cannot be split."""
    try:
        found = plan_tasks([network], target, lambda _: None, **form)
    except (NetworkError, TuningError):
        return
    for task in found:
        yield from (task.module, without_weights(task.module))  # as older records have it


def rows_of(module: Any, target: Any, traces: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """The features of recorded programs, as `rows_of_schedules` has them.

    Args:
        module: what they compute.
        target: TVM's.
        traces: as the JSON of records.
    """

    def schedule(trace: str) -> Any | None:
        try:
            return applied(module, trace)
        except Exception:  # noqa: BLE001 - whatever TVM raises, there is no such program
            return None

    with ThreadPoolExecutor(this_cpu().cores) as pool:
        return rows_of_schedules(module, target, list(pool.map(schedule, traces)))


def rows_of_schedules(
    module: Any, target: Any, schedules: Sequence[Any]
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """The features of programs; TVM lowers them on all cores.

    Args:
        module: what they compute.
        target: TVM's.
        schedules: `tvm.s_tir.Schedule`s; None for a program that is none.

    Returns:
        (S, 164) rows of all, and (n,) how many each has; none where TVM could not lower it.
    """
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    context = ms.TuneContext(mod=module, target=target, num_threads=this_cpu().cores)
    candidates = [ms.MeasureCandidate(each, []) for each in schedules if each is not None]
    found = iter(ms.feature_extractor.PerStoreFeature().extract_from(context, candidates))
    return stacked(np.empty(0) if each is None else next(found).numpy() for each in schedules)
