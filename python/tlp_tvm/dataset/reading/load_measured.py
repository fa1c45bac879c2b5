"""Measured programs from any source: a built dataset, a dataset folder or logs."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.reading.measured import MeasuredDataset, MeasuredTask, mean_latencies
from tlp_tvm.errors import DatasetError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.platform import Platform
from tlp_tvm.record_batch import RecordBatch
from tlp_tvm.records.detect import check_layout, iter_rows
from tlp_tvm.records.names import Names, description_of, split_of_missing
from tlp_tvm.records.source import DatasetSource, RecordGroup, find_source, is_built


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

    def add(self, group: RecordGroup, batch: RecordBatch, threads: int) -> None:
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
        table = self.source.table or {}
        tasks = [
            MeasuredTask(k, s, self.source.weights(k, s), description_of(table.get(k, ())))
            for k, s in splits.items()
        ]
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
