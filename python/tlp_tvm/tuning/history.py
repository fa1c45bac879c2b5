"""The measurements of a tuning so far, read from its record log, their only home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.search_scores import SearchScores
from tlp_tvm.record_batch import RecordBatch
from tlp_tvm.records.detect import read_records


@dataclass(frozen=True)
class History:
    """Measurements of a network's tasks, in the order they were made.

    Attributes:
        task_ids: (N,) index of the task of each measurement.
        latencies: (N,) seconds; infinity where it failed.
        tasks: how many tasks the network has.
    """

    task_ids: NDArray[np.int64]
    latencies: NDArray[np.float64]
    tasks: int

    def __len__(self) -> int:
        return len(self.task_ids)

    @property
    def counts(self) -> NDArray[np.int64]:
        """(tasks,) measurements of each task."""
        return np.bincount(self.task_ids, minlength=self.tasks)

    @property
    def failures(self) -> NDArray[np.int64]:
        """(tasks,) failed measurements of each task."""
        return np.bincount(self.task_ids[np.isinf(self.latencies)], minlength=self.tasks)

    @property
    def best(self) -> NDArray[np.float64]:
        """(tasks,) lowest latency of each task in seconds; infinity for a task without one."""
        best = np.full(self.tasks, np.inf)
        np.minimum.at(best, self.task_ids, self.latencies)
        return best

    @property
    def first(self) -> NDArray[np.float64]:
        """(tasks,) seconds of each task's first program that ran; infinity for a task without one."""
        first = np.full(self.tasks, np.inf)
        ran = np.isfinite(self.latencies)
        first[self.task_ids[ran][::-1]] = self.latencies[ran][::-1]
        return first

    def estimates(self, weights: Sequence[int]) -> NDArray[np.float64]:
        """The network's latency as the weighted sum of its tasks' best, after each measurement.

        A task of which none has run yet counts with the first that will; one that never runs is left out.

        Args:
            weights: (tasks,) how often each task appears.

        Returns:
            (N,) seconds.
        """
        best = self.first
        counted = np.flatnonzero(np.isfinite(best))
        weight = np.asarray(weights, np.float64)[counted]
        estimates = np.empty(len(self))
        for i, (task, latency) in enumerate(zip(self.task_ids, self.latencies, strict=True)):
            best[task] = min(best[task], latency)
            estimates[i] = best[counted] @ weight
        return estimates


def read_history(log: Path, workload_keys: Sequence[str]) -> History:
    """Read the log of a tuning.

    Args:
        log: records of either framework; need not exist yet.
        workload_keys: of the network's tasks; records of other tasks are passed over.

    Raises:
        RecordError: a line is no record.
    """
    if not log.exists() or not log.stat().st_size:
        return History(np.empty(0, np.int64), np.empty(0), len(workload_keys))
    return history_of(read_records(log), workload_keys)[0]


def history_of(batch: RecordBatch, workload_keys: Sequence[str]) -> tuple[History, NDArray[np.int64]]:
    """What records say of a network's tasks.

    Args:
        batch: of either framework.
        workload_keys: of the tasks; records of other tasks are passed over.

    Returns:
        It, and the rows of the batch that it has.
    """
    position = {key: i for i, key in enumerate(workload_keys)}
    of_batch = np.array([position.get(task.workload_key, -1) for task in batch.tasks], np.int64)
    task_ids = of_batch[batch.task_ids]
    rows = np.flatnonzero(task_ids >= 0)
    return History(task_ids[rows], batch.latencies[rows], len(workload_keys)), rows


def best_programs(logs: Sequence[Path], workload_keys: Sequence[str]) -> dict[str, tuple[float, str]]:
    """The fastest program of each task.

    Args:
        logs: TVM's record files, of which some need not exist.
        workload_keys: of the network's tasks.

    Returns:
        Workload key to latency in seconds and record line, for the tasks of which a program ran.

    Raises:
        RecordError: a line is no record.
    """
    return {key: found[0] for key, found in fastest_programs(logs, workload_keys, 1).items()}


def fastest_programs(
    logs: Sequence[Path], workload_keys: Sequence[str], count: int
) -> dict[str, list[tuple[float, str]]]:
    """The fastest programs of each task.

    Args:
        logs: as for `best_programs`.
        workload_keys: likewise.
        count: of programs of a task, at most.

    Returns:
        Workload key to latencies in seconds and record lines, the fastest first.

    Raises:
        RecordError: a line is no record.
    """
    found: dict[str, list[tuple[float, str]]] = {}
    for log in logs:
        if not log.exists() or not log.stat().st_size:
            continue
        batch = read_records(log)
        for position, task in enumerate(batch.tasks):
            rows = np.flatnonzero((batch.task_ids == position) & np.isfinite(batch.latencies))
            if task.workload_key not in workload_keys or not len(rows):
                continue
            fastest = rows[np.argsort(batch.latencies[rows], kind="stable")][:count]
            more = [(float(batch.latencies[row]), batch.line(int(row))) for row in fastest]
            known = found.get(task.workload_key, [])
            found[task.workload_key] = sorted(known + more, key=lambda each: each[0])[:count]
    return found


def teach(cost_model: SearchScores, logs: Sequence[Path]) -> None:
    """Have a cost model learn what logs hold, as if it had measured that now.

    Args:
        cost_model: learns.
        logs: records of either framework, of which some need not exist.

    Raises:
        RecordError: a line is no record.
    """
    for log in logs:
        if not log.exists() or not log.stat().st_size:
            continue
        batch = read_records(log)
        embeddings = batch.encode(cost_model.model.layout)
        for i, task in enumerate(batch.tasks):
            rows = np.flatnonzero(batch.task_ids == i)
            cost_model.learn(task.workload_key, task.target, embeddings[rows], batch.latencies[rows])
