"""Rankings summed up per network: top-k and that of a random pick, and rank correlation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tlp_tvm.metrics.correlation import Agreement
from tlp_tvm.metrics.topk import Chance, RankedTask, mean_top_k, random_mean_top_k, random_top_k, top_k

ALL_NETWORKS = "all networks"
"""One sum over the tasks of all networks."""

MEAN_OVER_TASKS = "mean over tasks"
"""The mean of each task's own top-k."""


@dataclass(frozen=True)
class RankedGroup:
    """Tasks of one platform that are summed up together: a network's, all networks', or every task alone."""

    platform: str
    network: str
    """A network, `ALL_NETWORKS` or `MEAN_OVER_TASKS`."""
    tasks: tuple[RankedTask, ...]
    agreement: Agreement
    """Means over the tasks."""

    def top(self, k: int, seed: int) -> float:
        """Top-k of the scores."""
        return (mean_top_k if self.network == MEAN_OVER_TASKS else top_k)(self.tasks, k, seed)

    def random(self, k: int, seed: int) -> Chance:
        """Top-k of a random pick."""
        chance = random_mean_top_k if self.network == MEAN_OVER_TASKS else random_top_k
        return chance(self.tasks, k, seed)


@dataclass(frozen=True)
class RankingRow:
    """One line of a ranking report."""

    platform: str
    network: str
    """A network, `ALL_NETWORKS` or `MEAN_OVER_TASKS`."""
    tasks: int
    top: dict[int, float]
    """k -> top-k of the scores."""
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
            {k: group.random(k, seed) for k in ks},
            **asdict(group.agreement),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **asdict(self),
            "top": {str(k): value for k, value in self.top.items()},
            "random": {str(k): asdict(value) for k, value in self.random.items()},
        }
