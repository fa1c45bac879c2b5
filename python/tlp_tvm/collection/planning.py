"""Which tasks to collect programs of: those of all networks, each once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.builtin import canonical_name, network_from, split_of
from tlp_tvm.ansor.networks.layout_rewrite import keep_layout_where_needed
from tlp_tvm.ansor.networks.tasks import extract_tasks, hardware_without_driver
from tlp_tvm.ansor.search.tune_inputs import hardware_of, quiet_builds


@dataclass
class PlannedTask:
    """A tuning task and the networks that it appears in; Ansor's, and others override what differs."""

    task: Any
    """`auto_scheduler.SearchTask`; its weights keep their layout where TVM cannot rewrite it."""
    weights: dict[str, int] = field(default_factory=dict)
    """Network -> how often it appears there."""
    workload: int = -1
    """Line of the folder's table of workloads, where the framework has one."""

    @property
    def workload_line(self) -> str | None:
        """Its line in that table; None where records say themselves what they compute."""
        return None

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

    @property
    def id(self) -> str:
        """Short name of the workload in file names."""
        return task_id(self.workload_key)

    @property
    def split(self) -> str:
        """Where evaluation holds out one of its networks, "test"; else "train"."""
        return "test" if any(split_of(name) == "test" for name in self.weights) else "train"

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Its lines in the dataset's table of tasks, but for "measured"."""
        return [
            {
                "task": self.id,
                "split": split_of(network),
                "network": network,
                "weight": weight,
                "workload_key": self.workload_key,
                "flop": self.flop,
                "desc": self.desc,
            }
            for network, weight in self.weights.items()
        ]


def plan_tasks(
    networks: Sequence[str], target: Any, tell: Callable[[str], None], split_for: Any = None
) -> list[PlannedTask]:
    """Split networks into tasks.

    Args:
        networks: built-in names, or files that `networks.network_from` reads.
        target: TVM target.
        tell: receives a line before each step.
        split_for: TVM target that the networks are split for, if another: what TVM packs a convolution's
            channels by depends on it, and the same programs need the same tasks.

    Returns:
        Each task once, in the order of the networks.

    Raises:
        NetworkError: no such network.
    """
    names = {canonical_name(network): network for network in networks}
    planned: dict[str, PlannedTask] = {}
    for name, network in names.items():
        tell(f"splitting {name} into tasks")
        for task, weight in _tasks_of(network, split_for or target):
            known = planned.setdefault(str(task.workload_key), PlannedTask(task))
            known.weights[name] = weight
    tell("trying the tasks")
    with quiet_builds():
        found = [each.task for each in planned.values()]
        if split_for is not None:
            found = [_for_target(task, target) for task in found]
        tasks, _ = keep_layout_where_needed(found)
    for each, task in zip(planned.values(), tasks, strict=True):
        each.task = task
    return list(planned.values())


def task_id(workload_key: str) -> str:
    """12 hexadecimal characters that stand for a workload in file names."""
    return hashlib.md5(workload_key.encode(), usedforsecurity=False).hexdigest()[:12]


def _for_target(task: Any, target: Any) -> Any:
    return load_tvm().auto_scheduler.SearchTask(
        workload_key=task.workload_key,
        target=target,
        hardware_params=hardware_of(target) or hardware_without_driver(str(target)),
        layout_rewrite_option=task.layout_rewrite_option,
        task_inputs=list(task.task_input_names) or None,
        desc=task.desc,
    )


def _tasks_of(network: str, target: Any) -> Iterator[tuple[Any, int]]:
    with quiet_builds():
        module, parameters, _ = network_from(network)
        tasks, weights = extract_tasks((module, parameters), str(target), hardware_of(target))
    yield from zip(tasks, weights, strict=True)
