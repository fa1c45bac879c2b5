"""Measured programs in memory: one row a program, one column a platform."""

from __future__ import annotations

import os
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
from tlp_tvm.records.detect import Batch, check_layout, iter_rows
from tlp_tvm.records.names import Names, split_of_missing
from tlp_tvm.records.source import PLAIN_NETWORK, DatasetSource, RecordGroup, find_source, is_built


@dataclass(frozen=True)
class MeasuredTask:
    """A subgraph with its shapes, whatever the platform."""

    workload_key: str
    split: str
    weights: dict[str, int]
    """Network -> how often the task occurs in it; networks of this split only."""

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


def load_measured(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    layout: FeatureLayout,
    *,
    platforms: Sequence[str] | None = None,
    stream: bool | None = False,
    threads: int = 0,
) -> MeasuredDataset:
    """Read measured programs.

    Args:
        source: a built dataset, a dataset folder, a log, or a list of logs (see `DatasetSource`).
        layout: how programs are embedded.
        platforms: the platforms of a dataset folder to take, in this order (all when None). Plain logs have
            a platform a target, called like the target; one name here renames the only one.
        stream: leave the programs of a built dataset on the disk and embed them when asked; None does so
            for large ones. Nothing else can be streamed.
        threads: native threads; 0 for all cores.

    Raises:
        DatasetError: nothing is there, or the records and the table of tasks disagree.
        RecordError: a line is no record.
    """
    if isinstance(source, (str, os.PathLike)) and is_built(source):
        from tlp_tvm.dataset.reading.loading import load_built  # pyarrow takes a while to import

        return load_built(source, layout, platforms=platforms, stream=stream, threads=threads)
    if stream:
        name = str(source) if isinstance(source, (str, os.PathLike)) else ", ".join(map(str, source))
        raise DatasetError(
            f"{name}: expected a built dataset to stream from, found records; build one of them with "
            "`tlp-tvm dataset build`"
        )
    found = find_source(source, platforms)
    check_layout(layout, found.framework, found.name)
    reader = _Reader(layout, found)
    for group in found.groups:
        for batch in iter_rows(found.framework, group.files, threads=threads):
            reader.add(group, batch, threads)
    return reader.dataset(platforms if found.table is None else None)


class _Reader:
    """Gathers batches: finds the row of each program and keeps the embeddings of new ones only."""

    def __init__(self, layout: FeatureLayout, source: DatasetSource) -> None:
        self.layout = layout
        self.source = source
        self.names = Names()
        self.program_of: dict[tuple[int, int], int] = {}  # (task, hash) -> program
        self.primitives: list[NDArray[np.float32]] = []
        self.counts: list[NDArray[np.int32]] = []
        self.measured: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []

    def add(self, group: RecordGroup, batch: Batch, threads: int) -> None:
        """Add one batch of records."""
        platform = self.names.platforms(self.source, group, batch.tasks)
        task = self.names.tasks(self.source, group, batch.tasks)
        known = len(self.program_of)
        keys = zip(task[batch.task_ids].tolist(), batch.sequence_hashes.tolist(), strict=True)
        program = np.array([self.program_of.setdefault(k, len(self.program_of)) for k in keys], np.int64)
        self.measured.append((program, platform[batch.task_ids], batch.latencies))
        new, first = np.unique(program, return_index=True)
        first = first[new >= known]
        counts = np.minimum(batch.lengths[first], self.layout.length).astype(np.int32)
        if len(first):
            features = batch.encode(self.layout, threads=threads)[first]
            self.primitives.append(features[np.arange(self.layout.length) < counts[:, None]])
        self.counts.append(counts)

    def dataset(self, names: Sequence[str] | None) -> MeasuredDataset:
        """What was gathered, ordered by task."""
        platforms = [Platform(name, target) for name, target in self.names.targets.items()]
        if names is not None:
            if len(names) != 1 or len(platforms) != 1:
                found = ", ".join(f'"{p.target}"' for p in platforms)
                raise DatasetError(
                    f"{self.source.name}: expected one name for the one platform of plain records, found "
                    f"{len(names)} for {found}"
                )
            platforms = [Platform(names[0], platforms[0].target)]
        if not self.program_of:
            raise DatasetError(f"{self.source.name}: expected measure records, found none")
        splits = dict(self.names.splits)
        for key, entries in (self.source.table or {}).items():
            if key not in splits:  # measured, says the table: evaluation shall see that it is missing
                splits[key] = split_of_missing(entries)
        tasks = [MeasuredTask(k, s, self.source.weights(k, s)) for k, s in splits.items()]
        task_index = np.array([task for task, _ in self.program_of], np.int32)
        order = np.argsort(task_index, kind="stable")
        program, platform, latency = (np.concatenate(parts) for parts in zip(*self.measured, strict=True))
        latencies = mean_latencies(program, platform, latency, (len(order), len(platforms)))
        counts = np.concatenate(self.counts)
        starts = np.cumsum(counts, dtype=np.int64) - counts
        return MeasuredDataset(
            layout=self.layout,
            platforms=tuple(platforms),
            tasks=tuple(tasks),
            task_index=task_index[order],
            latencies=latencies[order],
            primitives=np.concatenate(self.primitives),
            starts=starts[order],
            counts=counts[order],
            digest=self.source.digest,
        )


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
