"""TVM's per-store features of programs; for recorded ones, networks are split into tasks again.

A program has a row of 164 numbers for each store of its lowered loops.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.ansor.graph.pipeline import AS_BEFORE
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.targets import hardware_of, quiet_builds, target_of
from tlp_tvm.ansor.networks.builtin import load_network
from tlp_tvm.ansor.networks.network_files import is_network_file, read_by_tvm
from tlp_tvm.ansor.networks.planning import plan_tasks
from tlp_tvm.ansor.networks.tasks import extract_tasks
from tlp_tvm.errors import NetworkError, TuningError
from tlp_tvm.model.trees.store_trees import stacked
from tlp_tvm.planned_task import most_wanted

OTHER_TARGETS = ("llvm -mcpu=skylake-avx512", "llvm -mcpu=core-avx2", "llvm -mcpu=nehalem")
"""Tried after those of the platforms: TVM packs channels by the width of vectors, and the tasks of a dataset
may have been split off for another platform than the one that measured them."""

_Way = tuple[str, tuple[str, ...], bool]
"""A target's text, names of passes that do not run, and whether TVM's importer reads files alone."""


def rebuilt_tasks(
    tasks: Mapping[str, Mapping[str, int]], targets: Sequence[str], tell: Callable[[str], None]
) -> Iterator[Any]:
    """Split networks into tasks until all are there that are looked for; that takes minutes.

    Files are read and prepared as `collect` does, or else as it did before it had all of its passes, and
    before it read files with more than TVM's importer; they are split for the platforms' targets alone.

    Args:
        tasks: workload key -> the networks that have it, built-in names or files; what to look for.
        targets: of the platforms; which tasks a network has depends on it.
        tell: receives a line before each step.

    Yields:
        `auto_scheduler.SearchTask`, each once; those of networks that are neither are left out.
    """
    wanted = dict(tasks)
    ways: list[_Way] = [(text, (), False) for text in dict.fromkeys([*targets, *OTHER_TARGETS])]
    of_files: list[_Way] = [
        (text, left_out, by_tvm)
        for by_tvm in (False, True)
        for left_out in ((), *AS_BEFORE)
        for text in dict.fromkeys(targets)
    ]
    tried: set[str] = set()
    while network := most_wanted(wanted.values(), tried):
        tried.add(network)
        tries = of_files if is_network_file(network) else ways
        tell(f"per-store features: splitting {network} into tasks, {len(wanted)} still to be found")
        for way in list(tries):
            if not any(network in weights for weights in wanted.values()):
                break
            found = [
                task
                for task in _tasks_of(network, *way)
                if wanted.pop(str(task.workload_key), None) is not None
            ]
            if found:  # it is likely to be right for the other networks, too
                tries.remove(way)
                tries.insert(0, way)
            yield from found


def _tasks_of(network: str, target_text: str, leave_out: Sequence[str], by_tvm: bool) -> list[Any]:
    """None of what is no built-in network, or of a target that this TVM does not know."""
    try:
        target = target_of(target_text, here=False)
        if is_network_file(network):
            with read_by_tvm() if by_tvm else contextlib.nullcontext():
                planned = plan_tasks([network], target, lambda _: None, leave_out=leave_out)
            return [each.task for each in planned]
        with quiet_builds():
            return extract_tasks(load_network(network)[:2], str(target), hardware_of(target))[0]
    except (NetworkError, TuningError):
        return []


def rows_of(task: Any, lines: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """The features of recorded programs, as `rows_of_states` has them.

    Args:
        task: `auto_scheduler.SearchTask` that they are of.
        lines: their records.
    """
    load_tvm()
    from tvm.auto_scheduler import measure_record

    workload_key, target = str(task.workload_key), str(task.target)
    states = [
        measure_record.load_record_from_string(with_task(line, workload_key, target))[0].state
        for line in lines
    ]
    return rows_of_states(task, states)


def rows_of_states(task: Any, states: Sequence[Any]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """The features of programs; TVM lowers them on all cores.

    Args:
        task: `auto_scheduler.SearchTask` that they are of.
        states: the programs.

    Returns:
        (S, 164) rows of all, and (n,) how many each has; none where TVM could not lower it.
    """
    load_tvm()
    from tvm.auto_scheduler import feature

    return stacked(feature.get_per_store_features_from_states(states, task))


def with_task(line: str, workload_key: str, target: str) -> str:
    """A record with another task; a built dataset's records have none."""
    record = json.loads(line)
    record["i"][0][:2] = [workload_key, target]
    return json.dumps(record)
