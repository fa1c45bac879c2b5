"""Which tasks to collect programs of: those of all networks, each once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tlp_tvm.ansor.graph.pipeline import prepare
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.targets import hardware_of, quiet_builds
from tlp_tvm.ansor.networks.builtin import canonical_name, network_from
from tlp_tvm.ansor.networks.layout_rewrite import keep_layout_where_needed
from tlp_tvm.ansor.networks.tasks import extract_tasks, hardware_without_driver
from tlp_tvm.planned_task import PlannedTask, each_once


class RelayTask(PlannedTask):
    """A task of Ansor and the networks that it appears in.

    `task` is its `auto_scheduler.SearchTask`, whose weights keep their layout where TVM cannot rewrite it.
    """

    @property
    def workload_key(self) -> str:
        """TVM's key: the subgraph and its shapes, whatever the target."""
        return str(self.task.workload_key)

    @property
    def flop(self) -> float:
        """Floating-point operations of one run."""
        return float(self.task.compute_dag.flop_ct)

    @property
    def desc(self) -> str:
        """What TVM calls it."""
        return str(self.task.desc)


def plan_tasks(
    networks: Sequence[str],
    target: Any,
    tell: Callable[[str], None],
    split_for: Any = None,
    leave_out: Sequence[str] = (),
) -> list[RelayTask]:
    """Split networks into tasks.

    Args:
        networks: built-in names, or files that `networks.network_from` reads.
        target: TVM target.
        tell: receives a line before each step.
        split_for: TVM target that the networks are split for, if another: what TVM packs a convolution's
            channels by depends on it, and the same programs need the same tasks.
        leave_out: names of passes that do not prepare the networks.

    Returns:
        Each task once, in the order of the networks.

    Raises:
        NetworkError: no such network.
    """
    tasks_of = functools.partial(_tasks_of, target=split_for or target, leave_out=leave_out)
    planned = each_once(networks, canonical_name, tasks_of, tell)
    tell("trying the tasks")
    with quiet_builds():
        found = [each.task for each in planned]
        if split_for is not None:
            found = [_for_target(task, target) for task in found]
        tasks, _ = keep_layout_where_needed(found)
    for each, task in zip(planned, tasks, strict=True):
        each.task = task
    return planned


def _for_target(task: Any, target: Any) -> Any:
    return load_tvm().auto_scheduler.SearchTask(
        workload_key=task.workload_key,
        target=target,
        hardware_params=hardware_of(target) or hardware_without_driver(str(target)),
        layout_rewrite_option=task.layout_rewrite_option,
        task_inputs=list(task.task_input_names) or None,
        desc=task.desc,
    )


def _tasks_of(network: str, target: Any, leave_out: Sequence[str]) -> Iterator[tuple[RelayTask, int]]:
    with quiet_builds():
        module, parameters, _ = network_from(network)
        prepared = prepare(module, parameters, target, leave_out)
        with prepared.operators():
            pair = (prepared.module, prepared.parameters)
            tasks, weights = extract_tasks(pair, str(target), hardware_of(target))
    yield from zip(map(RelayTask, tasks), weights, strict=True)
