"""Measured programs and scores -> ranked tasks, singly and summed up per network."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.building.near_duplicates import near_duplicate_groups
from tlp_tvm.dataset.reading.holding_out import TRAIN_SPLIT
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.metrics.correlation import agreement, mean_agreement
from tlp_tvm.metrics.ranked_groups import (
    ALL_NETWORKS,
    FAR,
    MEAN_OVER_TASKS,
    NEAR,
    RankedGroup,
    RankingRow,
)
from tlp_tvm.metrics.topk import RankedTask


def ranked_tasks(dataset: MeasuredDataset, scores: NDArray[Any], column: int) -> dict[int, RankedTask]:
    """The tasks of which a program ran on a platform, by their places in the dataset.

    Args:
        dataset: the tasks to rank.
        scores: (N,) of every program; higher is better.
        column: the platform's.

    Raises:
        ValueError: a score is not a number.
    """
    if np.isnan(scores).any():
        raise ValueError("scores: expected numbers, found NaN")
    tasks: dict[int, RankedTask] = {}
    for i in range(len(dataset.tasks)):
        programs = dataset.programs_of(i)
        programs = programs[np.isfinite(dataset.latencies[programs, column])]
        if len(programs):
            latencies = dataset.latencies[programs, column]
            tasks[i] = RankedTask(latencies, scores[programs].astype(np.float64))
    return tasks


def ranked_everywhere(dataset: MeasuredDataset, scores: NDArray[Any]) -> list[RankedTask]:
    """The ranked tasks of all platforms, one list; scores are (N, P)."""
    columns = range(len(dataset.platforms))
    return [task for c in columns for task in ranked_tasks(dataset, scores[:, c], c).values()]


def ranked_groups(
    dataset: MeasuredDataset,
    scores: NDArray[Any],
    unscored: Collection[int] = (),
    where_measured: bool = False,
    near: Collection[str] | None = None,
) -> Iterator[RankedGroup]:
    """Every platform's networks, then all networks in one sum, then the mean over tasks.

    With `near`, the last two are followed by those of the near and of the far tasks alone.

    Args:
        dataset: the tasks to rank; usually one split.
        scores: (N, P), of every program on every platform; higher is better.
        unscored: tasks without scores. Groups that need one of them are left out, never made smaller.
        where_measured: count a task on the platforms where its programs ran, and a platform only if one
            did, as tasks of plain logs always do.
        near: workload keys of the tasks that have a near-duplicate among the training tasks.

    Raises:
        DatasetError: a task that a table lists has no program that ran on a platform where others of its
            network have. A smaller sum would look fine. Or no task has any.
    """
    if not where_measured:
        check_measured(dataset)
    networks = sorted({network for task in dataset.tasks for network in task.weights})
    for column, platform in enumerate(dataset.platforms):
        tasks = ranked_tasks(dataset, scores[:, column], column)
        if not tasks:
            continue
        agreements = {i: agreement(task.scores, -task.latencies) for i, task in tasks.items()}
        members: dict[str, list[tuple[int, float]]] = {network: [] for network in networks}
        for i in tasks:
            for network, weight in dataset.tasks[i].weights.items():
                members[network].append((i, weight))
        every = [member for part in members.values() for member in part]
        for name, part in ((ALL_NETWORKS, every), (MEAN_OVER_TASKS, [(i, 1.0) for i in tasks])):
            members[name] = part
            for ending in (NEAR, FAR) if near is not None else ():
                is_near = ending == NEAR
                members[name + ending] = [
                    (i, w) for i, w in part if (dataset.tasks[i].workload_key in (near or ())) == is_near
                ]
        for network, chosen in members.items():
            if chosen and not any(i in unscored for i, _ in chosen):
                weighted = tuple(RankedTask(tasks[i].latencies, tasks[i].scores, w) for i, w in chosen)
                mean = mean_agreement([agreements[i] for i, _ in chosen])
                keys = tuple(dataset.tasks[i].workload_key for i, _ in chosen)
                yield RankedGroup(platform.name, network, weighted, keys, mean)


def near_training(dataset: MeasuredDataset) -> set[str] | None:
    """The workload keys of the tasks that have a near-duplicate among the training tasks.

    Returns:
        None where no keys of operator graphs say which tasks resemble each other, as those of MetaSchedule,
        or where there are no training tasks.
    """
    tasks = [(task.workload_key, task.description) for task in dataset.tasks]
    training = [task.split == TRAIN_SPLIT for task in dataset.tasks]
    if not any(training) or not all(key.startswith("[") for key, _ in tasks):
        return None
    groups = near_duplicate_groups(tasks)
    learned = {group for group, is_training in zip(groups, training, strict=True) if is_training}
    return {
        key
        for (key, _), group, is_training in zip(tasks, groups, training, strict=True)
        if group in learned and not is_training
    }


def ranking_rows(
    dataset: MeasuredDataset,
    scores: NDArray[Any],
    ks: Sequence[int] = (1, 5),
    seed: int = 0,
    where_measured: bool = False,
    near: Collection[str] | None = None,
) -> list[RankingRow]:
    """Rank every task of a dataset on every platform and sum up per network.

    Args:
        dataset: the tasks to rank; usually one split.
        scores: (N, P), of every program on every platform; higher is better.
        ks: how many first choices count.
        seed: breaks ties and draws the random picks.
        where_measured: as for `ranked_groups`.
        near: likewise.

    Raises:
        DatasetError: as `ranked_groups`.
    """
    groups = ranked_groups(dataset, scores, where_measured=where_measured, near=near)
    return [RankingRow.of(group, ks, seed) for group in groups]


def check_measured(dataset: MeasuredDataset) -> None:
    """Check what `ranked_groups` asks of a dataset, before there are scores.

    Raises:
        DatasetError: as `ranked_groups`.
    """
    ran = np.isfinite(dataset.latencies)
    if not ran.any():
        names = ", ".join(platform.name for platform in dataset.platforms)
        raise DatasetError(
            f"platform {names}: expected programs that ran of at least one test task, found none; evaluate "
            "without that platform"
        )
    for column, platform in enumerate(dataset.platforms):
        _check_measured(dataset, platform.name, set(dataset.task_index[ran[:, column]].tolist()))


def _check_measured(dataset: MeasuredDataset, platform: str, measured: Collection[int]) -> None:
    """A platform or network without any of its tasks there is not judged, which says nothing false."""
    judged = {network for i in measured for network in dataset.tasks[i].weights}
    for i, task in enumerate(dataset.tasks):
        wanted = not judged.isdisjoint(task.weights) or (measured and not task.weights)
        if wanted and i not in measured and task.is_listed:
            raise DatasetError(
                f"platform {platform}: expected measured programs of {task.workload_key} "
                f"({', '.join(task.weights) or 'no network'}), found none that ran; measure that task, "
                "or evaluate without that platform"
            )
