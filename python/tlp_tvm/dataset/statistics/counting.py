"""Counts of a built dataset in one pass: collisions, spread, noise, failures and lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.reading.built import BuiltDataset
from tlp_tvm.dataset.reading.measured import mean_latencies
from tlp_tvm.dataset.reading.shards import ProgramBatch
from tlp_tvm.dataset.statistics.collisions import embedding_keys
from tlp_tvm.dataset.statistics.histogram import Histogram
from tlp_tvm.dataset.statistics.layout_fit import LayoutStatistics
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.measuring.pool import REASONS

FAILURES = {3: "does not compile for the device", 5: "wrong answer", 8: "unknown"} | REASONS
"""TVM's MeasureErrorNo in words."""


@dataclass(frozen=True)
class _Programs:
    """All programs of a shard."""

    tasks: NDArray[np.int32]  # (N,) ascending
    hashes: NDArray[np.uint64]
    lengths: NDArray[np.int32]
    latencies: NDArray[np.float64]  # (N, P)
    seen: dict[str, NDArray[np.uint64]]  # layout -> (N,) keys of embeddings


class DatasetStatistics:
    """Gathers statistics, shard after shard; `statistics_summary.summary_of` makes them readable.

    Attributes:
        dataset: what is read.
        layouts: what each layout cuts.
        tasks: what there is to say of each task, by its place in the task table.
        failures: reason -> measurements, a dictionary a platform.
        hashes: (n,) sequence hashes of each shard's programs; the next four are parallel to it.
        task_of: (n,) their tasks.
        latencies: (n, P) seconds.
        relative: (n, P) best latency of the task / latency.
        seen: layout -> (n,) hashes of their embeddings.
        noise: standard deviation / mean over the repeats of a measurement, a histogram a platform.
        labels: best latency of the task / latency, a histogram a platform.
        lengths: primitives -> programs.
    """

    def __init__(self, dataset: BuiltDataset, layouts: Sequence[FeatureLayout]) -> None:
        platforms = range(len(dataset.manifest.platforms))
        self.dataset = dataset
        self.layouts = [LayoutStatistics(layout) for layout in layouts]
        self.noise = [Histogram(np.geomspace(1e-5, 10, 241)) for _ in platforms]
        self.labels = [Histogram(np.linspace(0, 1, 201)) for _ in platforms]
        self.failures: list[dict[str, int]] = [{} for _ in platforms]
        self._failures_of_task: dict[tuple[int, int], dict[str, int]] = {}
        self.tasks: dict[int, dict[str, Any]] = {}
        self._noise_of_task: dict[tuple[int, int], list[NDArray[np.float64]]] = {}
        self.hashes: list[NDArray[np.uint64]] = []
        self.task_of: list[NDArray[np.int32]] = []
        self.latencies: list[NDArray[np.float32]] = []
        self.relative: list[NDArray[np.float32]] = []
        self.seen: dict[str, list[NDArray[np.uint64]]] = {layout.name: [] for layout in layouts}

    @property
    def lengths(self) -> dict[int, int]:
        """Primitives -> programs."""
        return dict(sorted(self.layouts[0].lengths.items()))

    def add_shard(self, i: int) -> None:
        """Read a shard.

        Raises:
            DatasetError: it is damaged.
        """
        parts = [self._programs(batch) for batch in self.dataset.shard(i)]
        if not parts:
            return
        programs = _Programs(
            tasks=np.concatenate([p.tasks for p in parts]),
            hashes=np.concatenate([p.hashes for p in parts]),
            lengths=np.concatenate([p.lengths for p in parts]),
            latencies=np.concatenate([p.latencies for p in parts]),
            seen={name: np.concatenate([p.seen[name] for p in parts]) for name in self.seen},
        )
        begins = np.flatnonzero(np.diff(programs.tasks, prepend=-1)).tolist()
        labels = np.full(programs.latencies.shape, np.nan, np.float32)
        for begin, end in pairwise([*begins, len(programs.tasks)]):
            labels[begin:end] = self._add_task(programs, slice(begin, end))
        self.hashes.append(programs.hashes)
        self.task_of.append(programs.tasks)
        self.latencies.append(programs.latencies.astype(np.float32))
        self.relative.append(labels)
        for name, keys in programs.seen.items():
            self.seen[name].append(keys)

    def _programs(self, batch: ProgramBatch) -> _Programs:
        records = batch.records()
        seen = {}
        for statistics in self.layouts:
            features = statistics.add(records)
            seen[statistics.layout.name] = embedding_keys(features)
        shape = len(batch), len(self.failures)
        self._add_failures(batch)
        self._add_noise(batch)
        return _Programs(
            batch.tasks,
            batch.sequence_hashes,
            records.lengths,
            mean_latencies(batch.programs, batch.platforms, batch.latencies, shape),
            seen,
        )

    def _add_failures(self, batch: ProgramBatch) -> None:
        failed = np.flatnonzero(batch.errors)
        kinds = np.stack([batch.tasks[batch.programs], batch.platforms, batch.errors])[:, failed]
        for (task, platform, error), count in zip(*_unique_columns(kinds), strict=True):
            reason = FAILURES.get(error, f"error {error}")
            of_task = self._failures_of_task.setdefault((task, platform), {})
            for counts in (self.failures[platform], of_task):
                counts[reason] = counts.get(reason, 0) + count

    def _add_noise(self, batch: ProgramBatch) -> None:
        repeats = np.diff(batch.cost_offsets)
        usable = np.flatnonzero((repeats > 1) & np.isfinite(batch.latencies) & (batch.latencies > 0))
        of = np.repeat(np.arange(len(repeats)), repeats)
        means = np.bincount(of, batch.cost_values, minlength=len(repeats)) / np.maximum(repeats, 1)
        squares = (batch.cost_values - means[of]) ** 2
        sums = np.bincount(of, squares, minlength=len(repeats))
        noise = np.sqrt(sums[usable] / (repeats[usable] - 1)) / means[usable]
        tasks, platforms = batch.tasks[batch.programs[usable]], batch.platforms[usable]
        for platform, histogram in enumerate(self.noise):
            histogram.add(noise[platforms == platform])
        order = np.lexsort((platforms, tasks))
        pairs = np.stack([tasks[order], platforms[order]])
        begins = np.flatnonzero(np.any(np.diff(pairs, prepend=-1), axis=0)).tolist()
        for begin, end in pairwise([*begins, len(order)]):
            key = int(pairs[0, begin]), int(pairs[1, begin])
            self._noise_of_task.setdefault(key, []).append(noise[order[begin:end]])

    def _add_task(self, programs: _Programs, rows: slice) -> NDArray[np.float32]:
        """Count one task. Returns (n, P) labels."""
        number = int(programs.tasks[rows.start])
        entry = self.dataset.manifest.tasks[number]
        latencies = programs.latencies[rows]
        finite = np.where(np.isfinite(latencies) & (latencies > 0), latencies, np.nan)
        labels = np.full(latencies.shape, np.nan, np.float32)
        of_platform: dict[str, Any] = {}
        for p, platform in enumerate(self.dataset.manifest.platforms):
            column = finite[:, p]
            worked = column[~np.isnan(column)]
            noise = self._noise_of_task.pop((number, p), None)
            told: dict[str, Any] = {
                "programs": int(np.sum(~np.isnan(latencies[:, p]))),
                "failed": int(np.sum(np.isinf(latencies[:, p]))),
            }
            if len(worked):
                best, p25, median, p75 = np.quantile(worked, [0, 0.25, 0.5, 0.75]).tolist()
                labels[:, p] = best / column
                self.labels[p].add(best / worked)
                told |= {
                    "best_s": best,
                    "median_over_best": median / best,
                    "worst_over_best": float(worked.max()) / best,
                    "p75_over_p25": p75 / p25,
                }
            if (number, p) in self._failures_of_task:
                told["failures"] = self._failures_of_task.pop((number, p))
            if noise is not None:
                told["noise"] = float(np.median(np.concatenate(noise)))
            of_platform[platform.name] = told
        lengths = programs.lengths[rows]
        self.tasks[number] = {
            "workload_key": entry.workload_key,
            "description": entry.description,
            "split": entry.split,
            "networks": entry.weights | entry.also_in,
            "flop": entry.flop,
            "programs": len(lengths),
            "sequences": len(np.unique(programs.hashes[rows])),
            "embeddings": {name: len(np.unique(keys[rows])) for name, keys in programs.seen.items()},
            "length": {"median": float(np.median(lengths)), "max": int(lengths.max())},
            "cut": {
                statistics.layout.name: int(np.sum(lengths > statistics.layout.length))
                for statistics in self.layouts
            },
            "platforms": of_platform,
        }
        return labels


def dataset_statistics(dataset: BuiltDataset, layouts: Sequence[FeatureLayout]) -> DatasetStatistics:
    """Read a built dataset once.

    Args:
        dataset: what to read.
        layouts: for embeddings, their collisions and their cuts; at least one.

    Raises:
        DatasetError: a shard is damaged.
    """
    statistics = DatasetStatistics(dataset, layouts)
    for i in range(len(dataset.manifest.shards)):
        statistics.add_shard(i)
    return statistics


def _unique_columns(columns: NDArray[np.int64]) -> tuple[list[list[int]], list[int]]:
    unlike, counts = np.unique(columns, axis=1, return_counts=True)
    return unlike.T.tolist(), counts.tolist()
