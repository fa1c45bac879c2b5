"""A tuning task, and what a dataset's table says of it."""

from __future__ import annotations

import abc
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tlp_tvm.network_names import split_of


@dataclass
class PlannedTask(abc.ABC):
    """A tuning task and the networks that it appears in; a framework says what the task is."""

    task: Any
    """TVM's."""
    weights: dict[str, int] = field(default_factory=dict)
    """Network -> how often it appears there."""
    workload: int = -1
    """Line of the folder's table of workloads, where the framework has one."""
    held_out: bool = False
    """Whether its networks judge models and teach none, whatever their names say."""

    @property
    def workload_line(self) -> str | None:
        """Its line in that table; None where records say themselves what they compute."""
        return None

    @property
    @abc.abstractmethod
    def workload_key(self) -> str:
        """TVM's key: the subgraph and its shapes, whatever the target."""

    @property
    @abc.abstractmethod
    def flop(self) -> float:
        """Floating-point operations of one run."""

    @property
    @abc.abstractmethod
    def desc(self) -> str:
        """What TVM calls it."""

    @property
    def id(self) -> str:
        """Short name of the workload in file names."""
        return task_id(self.workload_key)

    @property
    def split(self) -> str:
        """Where evaluation holds out one of its networks, "test"; else "train"."""
        return "test" if any(self._split_in(name) == "test" for name in self.weights) else "train"

    def _split_in(self, network: str) -> str:
        return "test" if self.held_out else split_of(network)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Its lines in the dataset's table of tasks, but for "measured"."""
        return [
            {
                "task": self.id,
                "split": self._split_in(network),
                "network": network,
                "weight": weight,
                "workload_key": self.workload_key,
                "flop": self.flop,
                "desc": self.desc,
            }
            for network, weight in self.weights.items()
        ]


def task_id(workload_key: str) -> str:
    """12 hexadecimal characters that stand for a workload in file names."""
    return hashlib.md5(workload_key.encode(), usedforsecurity=False).hexdigest()[:12]


AnyTask = TypeVar("AnyTask", bound=PlannedTask)


def each_once(
    networks: Sequence[str],
    name_of: Callable[[str], str],
    tasks_of: Callable[[str], Iterable[tuple[AnyTask, int]]],
    tell: Callable[[str], None],
) -> list[AnyTask]:
    """The tasks of networks, each once, in the order of the networks.

    Args:
        networks: as `tasks_of` takes them.
        name_of: the full name of a network.
        tasks_of: the tasks of a network, and how often it has each.
        tell: is told in words what is going on.
    """
    names = {name_of(network): network for network in networks}
    planned: dict[str, AnyTask] = {}
    for name, network in names.items():
        tell(f"splitting {name} into tasks")
        for task, weight in tasks_of(network):
            known = planned.setdefault(task.workload_key, task)
            known.weights[name] = known.weights.get(name, 0) + weight
    return list(planned.values())


def most_wanted(tasks: Iterable[Mapping[str, int]], tried: Collection[str]) -> str | None:
    """The network that has most of some tasks; None where all were tried.

    Args:
        tasks: of each, the networks that have it.
        tried: networks that are not wanted again.
    """
    networks = Counter(name for weights in tasks for name in weights if name not in tried)
    return networks.most_common(1)[0][0] if networks else None


def largest(tasks: Sequence[AnyTask], count: int) -> list[AnyTask]:
    """The tasks with the most operations of each network.

    Args:
        tasks: of all networks.
        count: of each network; 0 for all.
    """

    def operations(task: AnyTask, network: str) -> float:
        return task.flop * task.weights[network]

    chosen: dict[str, AnyTask] = {}
    for network in dict.fromkeys(network for task in tasks for network in task.weights):
        own = [task for task in tasks if network in task.weights and task.id not in chosen]
        own.sort(key=lambda task: operations(task, network), reverse=True)
        chosen |= {task.id: task for task in own[: count or len(own)]}
    return list(chosen.values())
