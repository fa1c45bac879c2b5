"""The tasks of a network that is to be tuned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NetworkPlan:
    """What a tuning searches.

    Attributes:
        tasks: `auto_scheduler.SearchTask`s.
        weights: how often each appears in the network.
        threads: that its programs run on.
    """

    tasks: Sequence[Any]
    weights: Sequence[int]
    threads: int

    @property
    def keys(self) -> list[str]:
        """Workload keys of the tasks."""
        return [str(task.workload_key) for task in self.tasks]

    def to_dicts(self) -> list[dict[str, Any]]:
        """For run.json, before anything is measured."""
        return [
            {
                "name": str(task.desc),
                "workload_key": str(task.workload_key),
                "weight": int(weight),
                "flops": float(task.compute_dag.flop_ct),
            }
            for task, weight in zip(self.tasks, self.weights, strict=True)
        ]
