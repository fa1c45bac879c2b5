"""Rankings summed up per network: top-k and that of a random pick, and rank correlation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tlp_tvm.metrics.bootstrap import Interval, of_ratio
from tlp_tvm.metrics.correlation import Agreement
from tlp_tvm.metrics.topk import Chance, RankedTask, mean_top_k, random_mean_top_k, random_top_k, top_k

ALL_NETWORKS = "all networks"
"""One sum over the tasks of all networks, weighted by latency and by occurrence: the published metric."""

MEAN_OVER_TASKS = "mean over tasks"
"""The mean of each task's own top-k."""

NEAR, FAR = ", near", ", far"
"""Endings of these two: only tasks that have, or lack, a near-duplicate among the training tasks."""


@dataclass(frozen=True)
class RankedGroup:
    """Tasks of one platform that are summed up together: a network's, all networks', or every task alone."""

    platform: str
    network: str
    """A network, `ALL_NETWORKS` or `MEAN_OVER_TASKS`, these two also with the ending `NEAR` or `FAR`."""
    tasks: tuple[RankedTask, ...]
    keys: tuple[str, ...]
    """Their workload keys."""
    agreement: Agreement
    """Means over the tasks."""

    @property
    def is_mean(self) -> bool:
        """Whether each task counts alike."""
        return self.network.startswith(MEAN_OVER_TASKS)

    def top(self, k: int, seed: int) -> float:
        """Top-k of the scores."""
        return (mean_top_k if self.is_mean else top_k)(self.tasks, k, seed)

    def parts(self, k: int, seed: int) -> tuple[list[float], list[float]]:
        """What top-k is the ratio of the sums of: a part above and one below the line for each task."""
        best = [float(task.latencies.min()) for task in self.tasks]
        picked = [task.best_of(k, seed) for task in self.tasks]
        if self.is_mean:
            return [a / b for a, b in zip(best, picked, strict=True)], [1.0] * len(best)
        weights = [task.weight for task in self.tasks]
        return (
            [a * w for a, w in zip(best, weights, strict=True)],
            [b * w for b, w in zip(picked, weights, strict=True)],
        )

    def random(self, k: int, seed: int) -> Chance:
        """Top-k of a random pick."""
        chance = random_mean_top_k if self.is_mean else random_top_k
        return chance(self.tasks, k, seed)


@dataclass(frozen=True)
class RankingRow:
    """One line of a ranking report."""

    platform: str
    network: str
    """As of `RankedGroup`."""
    tasks: int
    top: dict[int, float]
    """k -> top-k of the scores."""
    interval: dict[int, Interval]
    """k -> bootstrap interval of it over tasks."""
    random: dict[int, Chance]
    """k -> top-k of random scores."""
    spearman: float
    """Mean over tasks of the rank correlation of scores with speed."""
    kendall: float
    """Mean over tasks of Kendall's tau-b."""
    pairwise_accuracy: float
    """Mean over tasks of the share of pairs in the right order."""

    @classmethod
    def of(cls, group: RankedGroup, ks: Sequence[int], seed: int) -> RankingRow:
        """Sum up a group; the seed breaks ties and draws the random picks."""
        return cls(
            group.platform,
            group.network,
            len(group.tasks),
            {k: group.top(k, seed) for k in ks},
            {k: of_ratio(*map(np.array, group.parts(k, seed))) for k in ks},
            {k: group.random(k, seed) for k in ks},
            **asdict(group.agreement),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **asdict(self),
            "top": {str(k): value for k, value in self.top.items()},
            "interval": {str(k): asdict(value) for k, value in self.interval.items()},
            "random": {str(k): asdict(value) for k, value in self.random.items()},
        }
