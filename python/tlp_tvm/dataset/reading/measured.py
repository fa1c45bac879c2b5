"""Measured programs in memory: one row per program, one column per platform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.embedding import Embedding
from tlp_tvm.errors import DatasetError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.platform import Platform
from tlp_tvm.records.source import PLAIN_NETWORK


@dataclass(frozen=True)
class MeasuredTask:
    """A subgraph with its shapes, whatever the platform."""

    workload_key: str
    split: str
    weights: dict[str, int]
    """Network -> how often the task occurs in it; networks of this split only."""
    description: str | None = None
    """The compiler's name of the function, where the source has one."""

    @property
    def is_listed(self) -> bool:
        """Whether a table says that it was measured, on every platform; plain logs promise nothing."""
        return set(self.weights) != {PLAIN_NETWORK}


@dataclass(frozen=True)
class MeasuredDataset:
    """N programs of T tasks, measured on P platforms; a program counts once however often it was recorded.

    Only real rows of the embeddings are kept, so memory goes with the length of the programs.
    """

    layout: FeatureLayout
    platforms: tuple[Platform, ...]
    tasks: tuple[MeasuredTask, ...]
    task_index: NDArray[np.int32]
    """(N,) ascending indices into `tasks`."""
    latencies: NDArray[np.float64]
    """(N, P) seconds, the median of the repeats; infinity where measuring failed, NaN where not measured."""
    primitives: NDArray[np.float32]
    """(R, E): the rows of all programs, shared by every selection."""
    starts: NDArray[np.int64]
    """(N,) first row of each program in `primitives`."""
    counts: NDArray[np.int32]
    """(N,) rows of each program, at most L."""
    digest: str
    """Names the files that this was read from (see `DatasetSource`), or the built dataset."""
    is_streamed: ClassVar[bool] = False
    """Whether the embeddings are made when asked for, and not held."""

    def __len__(self) -> int:
        return len(self.task_index)

    def features(self, programs: NDArray[np.int64] | slice = slice(None)) -> Embedding:
        """Embeddings of the chosen programs, (n, L, E) float32; rows past a program are zero."""
        starts, counts = self.starts[programs], self.counts[programs].astype(np.int64)
        out = np.zeros((len(starts), self.layout.length, self.layout.width), np.float32)
        program = np.repeat(np.arange(len(starts)), counts)
        row = np.arange(len(program)) - np.repeat(np.cumsum(counts) - counts, counts)
        out[program, row] = self.primitives[starts[program] + row]
        return out

    @cached_property
    def labels(self) -> NDArray[np.float32]:
        """(N, P): min latency of the task on the platform / latency, in (0, 1].

        0 where measuring failed; NaN where nobody measured, or where all that the task has there failed.
        """
        best = np.full((len(self.tasks), len(self.platforms)), np.inf)
        np.fmin.at(best, self.task_index, self.latencies)
        best[np.isinf(best)] = np.nan
        return (best[self.task_index] / self.latencies).astype(np.float32)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that have tasks, sorted."""
        return tuple(sorted({task.split for task in self.tasks}))

    def neighbourhoods(self, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        """Groups of tasks that are quick to read together, every task once; in memory all are one group.

        Args:
            rng: draws the groups.
        """
        yield np.arange(len(self.tasks))

    def programs_of(self, task: int) -> NDArray[np.int64]:
        """Indices of a task's programs."""
        begin, end = np.searchsorted(self.task_index, [task, task + 1])
        return np.arange(begin, end, dtype=np.int64)

    def of_tasks(self, tasks: Sequence[int]) -> MeasuredDataset:
        """Only these tasks, in ascending order; features are shared, not copied."""
        chosen = sorted(set(tasks))
        renumbered = np.full(len(self.tasks), -1, np.int32)
        renumbered[chosen] = np.arange(len(chosen))
        kept = np.flatnonzero(renumbered[self.task_index] >= 0)
        return replace(
            self,
            tasks=tuple(self.tasks[i] for i in chosen),
            task_index=renumbered[self.task_index[kept]],
            latencies=self.latencies[kept],
            starts=self.starts[kept],
            counts=self.counts[kept],
        )

    def of_split(self, split: str) -> MeasuredDataset:
        """Only the tasks of a split.

        Raises:
            DatasetError: there are none.
        """
        tasks = [i for i, task in enumerate(self.tasks) if task.split == split]
        if not tasks:
            raise DatasetError(
                f'dataset: expected tasks of the split "{split}", found {", ".join(self.splits)}'
            )
        return self.of_tasks(tasks)


def mean_latencies(
    program: NDArray[np.int64],
    platform: NDArray[np.int64],
    latency: NDArray[np.float64],
    shape: tuple[int, int],
) -> NDArray[np.float64]:
    """Means over the measurements that worked.

    Args:
        program: (M,) the program of each measurement.
        platform: (M,) its platform.
        latency: (M,) seconds; infinity where it failed.
        shape: (N, P).

    Returns:
        (N, P): seconds; infinity where measuring failed, NaN where nobody measured.
    """
    worked = np.isfinite(latency) & (latency > 0)
    sums, count, tried = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)
    tried[program, platform] = True
    np.add.at(sums, (program[worked], platform[worked]), latency[worked])
    np.add.at(count, (program[worked], platform[worked]), 1)
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, sums / np.maximum(count, 1), np.where(tried, np.inf, np.nan))
