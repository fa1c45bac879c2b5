"""A model's ranking of a split: per platform and network, beside a random pick."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.metrics.correlation import Agreement, agreement
from tlp_tvm.metrics.topk import Chance, RankedTask, mean_top_k, random_mean_top_k, random_top_k, top_k

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
    kendall: float
    """Mean over tasks of Kendall's tau-b."""
    pairwise_accuracy: float
    """Mean over tasks of the share of pairs in the right order."""

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


@dataclass(frozen=True)
class RankedGroup:
    """Tasks that are summed up together on one platform: a network's, all networks', or every task alone."""

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


def ranked_groups(
    dataset: MeasuredDataset,
    scores: NDArray[Any],
    unscored: Collection[int] = (),
    where_measured: bool = False,
) -> Iterator[RankedGroup]:
    """Every platform's networks, then all networks in one sum, then the mean over tasks.

    Args:
        dataset: the tasks to rank; usually one split.
        scores: (N, P), of every program on every platform; higher is better.
        unscored: tasks without scores. Groups that need one of them are passed over, never made smaller.
        where_measured: whether a task counts on the platforms where its programs ran, and a platform only
            if one did, as tasks of plain logs always do.

    Raises:
        DatasetError: a task that a table lists has no program that ran on a platform. A smaller sum would
            look fine.
    """
    networks = sorted({network for task in dataset.tasks for network in task.weights})
    for column, platform in enumerate(dataset.platforms):
        ranked = enumerate(ranked_tasks(dataset, scores[:, column], column))
        tasks = {i: programs for i, programs in ranked if programs is not None}
        if not where_measured:
            _check_measured(dataset, platform.name, tasks)
        elif not tasks:
            continue
        agreements = {i: agreement(task.scores, -task.latencies) for i, task in tasks.items()}
        members: dict[str, list[tuple[int, float]]] = {network: [] for network in networks}
        for i in tasks:
            for network, weight in dataset.tasks[i].weights.items():
                members[network].append((i, weight))
        members[ALL_NETWORKS] = [member for part in members.values() for member in part]
        members[MEAN_OVER_TASKS] = [(i, 1.0) for i in tasks]
        for network, chosen in members.items():
            if chosen and not any(i in unscored for i, _ in chosen):
                weighted = tuple(RankedTask(tasks[i].latencies, tasks[i].scores, w) for i, w in chosen)
                yield RankedGroup(platform.name, network, weighted, _mean([agreements[i] for i, _ in chosen]))


def check_measured(dataset: MeasuredDataset) -> None:
    """What `ranked_groups` asks of a dataset, before there are scores.

    Raises:
        DatasetError: as `ranked_groups`.
    """
    ran = np.isfinite(dataset.latencies)
    for column, platform in enumerate(dataset.platforms):
        _check_measured(dataset, platform.name, set(dataset.task_index[ran[:, column]].tolist()))


def _check_measured(dataset: MeasuredDataset, platform: str, measured: Collection[int]) -> None:
    for i, task in enumerate(dataset.tasks):
        if i not in measured and task.is_listed:
            raise DatasetError(
                f"platform {platform}: expected measured programs of {task.workload_key} "
                f"({', '.join(task.weights) or 'no network'}), found none that ran; measure that task, "
                "or evaluate without that platform"
            )
    if not measured:
        raise DatasetError(
            f"platform {platform}: expected programs that ran of at least one judged task, found "
            "none; evaluate without that platform"
        )


def evaluate(
    dataset: MeasuredDataset,
    scores: NDArray[Any],
    ks: Sequence[int] = (1, 5),
    seed: int = 0,
    where_measured: bool = False,
) -> list[ReportRow]:
    """Rank every task of a dataset on every platform and sum up per network.

    Args:
        dataset: the tasks to rank; usually one split.
        scores: (N, P), of every program on every platform; higher is better.
        ks: how many first choices count.
        seed: breaks ties and draws the random picks.
        where_measured: as for `ranked_groups`.

    Raises:
        DatasetError: as `ranked_groups`.
    """
    return [
        ReportRow(
            group.platform,
            group.network,
            len(group.tasks),
            {k: group.top(k, seed) for k in ks},
            {k: group.random(k, seed) for k in ks},
            **asdict(group.agreement),
        )
        for group in ranked_groups(dataset, scores, where_measured=where_measured)
    ]


def _mean(agreements: Sequence[Agreement]) -> Agreement:
    def of(name: str) -> float:
        return float(np.mean([getattr(each, name) for each in agreements]))

    return Agreement(of("spearman"), of("kendall"), of("pairwise_accuracy"))
