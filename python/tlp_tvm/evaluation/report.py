"""A model's ranking of a split: per platform and network, beside a random pick."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.records import MeasuredDataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.ranking import spearman
from tlp_tvm.evaluation.topk import (
    Chance,
    RankedTask,
    mean_top_k,
    random_mean_top_k,
    random_top_k,
    top_k,
)

ALL_NETWORKS = "all networks"
MEAN_OVER_TASKS = "mean over tasks"


@dataclass(frozen=True)
class ReportRow:
    """One line of the report."""

    platform: str
    network: str
    """A network, `ALL_NETWORKS` in one sum, or `MEAN_OVER_TASKS`."""
    tasks: int
    top: dict[int, float]
    """k -> top-k of the model."""
    random: dict[int, Chance]
    """k -> top-k of random scores."""
    spearman: float
    """Mean over tasks of the rank correlation of scores with speed."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **asdict(self),
            "top": {str(k): value for k, value in self.top.items()},
            "random": {str(k): asdict(value) for k, value in self.random.items()},
        }


def ranked_tasks(dataset: MeasuredDataset, scores: NDArray[Any], column: int) -> list[RankedTask | None]:
    """The tasks of a dataset on one platform; None for one without a program that ran there.

    Raises:
        ValueError: a score is not a number.
    """
    if np.isnan(scores).any():
        raise ValueError("scores: expected numbers, found NaN")
    tasks: list[RankedTask | None] = []
    for i in range(len(dataset.tasks)):
        programs = dataset.programs_of(i)
        programs = programs[np.isfinite(dataset.latencies[programs, column])]
        latencies = dataset.latencies[programs, column]
        tasks.append(RankedTask(latencies, scores[programs].astype(np.float64)) if len(programs) else None)
    return tasks


def evaluate(
    dataset: MeasuredDataset, scores: NDArray[Any], ks: Sequence[int] = (1, 5), seed: int = 0
) -> list[ReportRow]:
    """Rank every task of a dataset on every platform and sum up per network.

    Args:
        dataset: the tasks to rank; usually one split.
        scores: (N, P), of every program on every platform; higher is better.
        ks: how many first choices count.
        seed: breaks ties and draws the random picks.

    Raises:
        DatasetError: a task has no program that ran on a platform. A smaller sum would look fine.
    """
    networks = sorted({network for task in dataset.tasks for network in task.weights})
    rows = []
    for column, platform in enumerate(dataset.platforms):
        ranked = ranked_tasks(dataset, scores[:, column], column)
        tasks: list[RankedTask] = []
        for task, programs in zip(dataset.tasks, ranked, strict=True):
            if programs is None:
                raise DatasetError(
                    f"platform {platform.name}: expected measured programs of {task.workload_key} "
                    f"({', '.join(task.weights) or 'no network'}), found none that ran; measure that task, "
                    "or evaluate without that platform"
                )
            tasks.append(programs)
        parts: dict[str, list[RankedTask]] = {network: [] for network in networks}
        for task, programs in zip(dataset.tasks, tasks, strict=True):
            for network, weight in task.weights.items():
                parts[network].append(RankedTask(programs.latencies, programs.scores, weight))
        for network, members in parts.items():
            rows.append(_network_row(platform.name, network, members, ks, seed))
        everything = [task for members in parts.values() for task in members]
        rows.append(_network_row(platform.name, ALL_NETWORKS, everything, ks, seed))
        rows.append(
            ReportRow(
                platform.name,
                MEAN_OVER_TASKS,
                len(tasks),
                {k: mean_top_k(tasks, k, seed) for k in ks},
                {k: random_mean_top_k(tasks, k, seed) for k in ks},
                _mean_spearman(tasks),
            )
        )
    return rows


def _network_row(
    platform: str, network: str, tasks: Sequence[RankedTask], ks: Sequence[int], seed: int
) -> ReportRow:
    return ReportRow(
        platform,
        network,
        len(tasks),
        {k: top_k(tasks, k, seed) for k in ks},
        {k: random_top_k(tasks, k, seed) for k in ks},
        _mean_spearman(tasks),
    )


def _mean_spearman(tasks: Iterable[RankedTask]) -> float:
    return float(np.mean([spearman(task.scores, -task.latencies) for task in tasks]))
