"""Tuning tasks of Relax networks, for collecting and comparing."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.builtin import canonical_name, network_from, tasks_of
from tlp_tvm.metaschedule.reading.workload_key import workload_key
from tlp_tvm.planned_task import PlannedTask, each_once


class TraceTask(PlannedTask):
    """A task of MetaSchedule and the networks that it appears in; `task` is its `ms.ExtractedTask`."""

    @functools.cached_property
    def module(self) -> Any:
        """What it computes, as an IRModule."""
        return self.task.dispatched[0]

    @property
    def target(self) -> Any:
        """TVM's target."""
        return self.task.target

    @functools.cached_property
    def workload_key(self) -> str:
        """TVM's structural hash of what it computes, whatever the target: 16 hexadecimal characters."""
        return workload_key(self.module)

    @functools.cached_property
    def workload_line(self) -> str | None:
        """Its line in a database's table of workloads."""
        load_tvm()
        from tvm.s_tir.meta_schedule.database import Workload

        return json.dumps([str(item) for item in Workload(self.module).as_json()], separators=(",", ":"))

    @functools.cached_property
    def flop(self) -> float:
        """Floating-point operations of one run."""
        load_tvm()
        from tvm.s_tir.analysis import estimate_tir_flops

        return float(estimate_tir_flops(self.module))

    @property
    def desc(self) -> str:
        """What TVM calls it."""
        return str(self.task.task_name)


def plan_tasks(
    networks: Sequence[str],
    target: Any,
    tell: Callable[[str], None],
    *,
    earlier: bool = False,
    usual: bool = False,
) -> list[TraceTask]:
    """Split networks into tasks.

    Args:
        networks: as `networks.network_from` takes them.
        target: TVM's target.
        tell: receives a line before each step.
        earlier: as `prepared` has it.
        usual: as `fused` has it.

    Returns:
        Each task once, in the order of the networks.

    Raises:
        NetworkError: no such network.
    """

    def tasks_of_network(network: str) -> Iterator[tuple[TraceTask, int]]:
        module, _ = network_from(network, earlier=earlier)
        return ((TraceTask(task), int(task.weight)) for task in tasks_of(module, target, usual=usual))

    return each_once(networks, canonical_name, tasks_of_network, tell)
