"""A built dataset -> measured programs, equal to those of the records it was built from."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.reading.built import BuiltDataset, open_built
from tlp_tvm.dataset.reading.measured import MeasuredDataset, MeasuredTask, mean_latencies
from tlp_tvm.dataset.reading.shards import ProgramBatch
from tlp_tvm.dataset.reading.streaming import Blocks, StreamedDataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.platform import Platform
from tlp_tvm.records.detect import check_layout

STREAM_FROM = 200_000
"""Programs from which on a dataset is streamed unless told otherwise; in memory they take 1 to 3 GB."""


def load_built(
    path: str | os.PathLike[str],
    layout: FeatureLayout,
    *,
    platforms: Sequence[str] | None = None,
    stream: bool | None = False,
    threads: int = 0,
) -> MeasuredDataset:
    """Read a built dataset. Tasks and programs keep the dataset's order, whatever the platforms.

    Args:
        path: its folder.
        layout: how programs are embedded.
        platforms: which to take, in this order; all when None. Programs of other platforms only are left out.
        stream: leave the programs on the disk and embed them when asked; None does so for large datasets.
        threads: native threads; 0 for all cores.

    Raises:
        DatasetError: it is missing or damaged, or lacks a platform.
    """
    built = open_built(path)
    check_layout(layout, built.manifest.framework, str(built.path))
    stream = len(built) >= STREAM_FROM if stream is None else stream
    column = _columns(built, platforms)
    sizes: list[list[int]] = []
    places: list[NDArray[np.int64]] = []
    primitives = [np.empty((0, layout.width), np.float32)]
    counts: list[NDArray[np.int32]] = []
    tasks: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
    latencies: list[NDArray[np.float64]] = []
    begin = 0
    for shard in range(len(built.manifest.shards)):
        sizes.append([])
        for batch in built.shard(shard):
            chosen, measured = _of_platforms(batch, column)
            if len(chosen):
                records = batch.records(threads=threads)
                length = np.minimum(records.lengths, layout.length).astype(np.int32)[chosen]
                counts.append(length)
                if not stream:
                    features = records.encode(layout, threads=threads)[chosen]
                    primitives.append(features[np.arange(layout.length) < length[:, None]])
            places.append(begin + chosen)
            tasks.append(batch.tasks[chosen])
            latencies.append(measured[chosen])
            sizes[-1].append(len(batch))
            begin += len(batch)
    task_index = np.concatenate(tasks)
    if not len(task_index):
        raise DatasetError(f"{built.path}: expected programs, found none")
    order = np.argsort(task_index, kind="stable")
    joined = np.concatenate(counts)
    entries = built.manifest.platforms
    dataset = MeasuredDataset(
        layout=layout,
        platforms=tuple(
            Platform(entries[i].name, entries[i].target) for i in np.argsort(column) if column[i] >= 0
        ),
        tasks=tuple(
            MeasuredTask(t.workload_key, t.split, t.weights, t.description) for t in built.manifest.tasks
        ),
        task_index=task_index[order],
        latencies=np.concatenate(latencies)[order],
        primitives=np.concatenate(primitives),
        starts=(np.cumsum(joined, dtype=np.int64) - joined)[order],
        counts=joined[order],
        digest=built.digest,
    )
    if not stream:
        return dataset
    fields = vars(dataset) | {"starts": np.concatenate(places)[order]}
    return StreamedDataset(**fields, blocks=Blocks(built, sizes), threads=threads)


def _columns(built: BuiltDataset, names: Sequence[str] | None) -> NDArray[np.int64]:
    """The column of each platform of the manifest; -1 for one that is left out."""
    there = [platform.name for platform in built.manifest.platforms]
    if names is None:
        return np.arange(len(there))
    column = np.full(len(there), -1)
    for i, name in enumerate(names):
        if name not in there:
            raise DatasetError(
                f'{built.path}: expected one of the platforms {", ".join(there)}, found "{name}"'
            )
        column[there.index(name)] = i
    return column


def _of_platforms(
    batch: ProgramBatch, column: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The programs that were measured on chosen platforms, and (n, P) latencies of all."""
    platform = column[batch.platforms]
    kept = platform >= 0
    program, latency = batch.programs[kept], batch.latencies[kept]
    means = mean_latencies(program, platform[kept], latency, (len(batch), int(column.max()) + 1))
    return np.unique(program), means
