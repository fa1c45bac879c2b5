"""A dataset reduced to some labels of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.evaluation.rankers import Programs


def of_platforms(data: MeasuredDataset, columns: Sequence[int]) -> MeasuredDataset:
    """Some platforms of a dataset, in this order; all programs."""
    chosen = list(columns)
    return replace(
        data, platforms=tuple(data.platforms[c] for c in chosen), latencies=data.latencies[:, chosen]
    )


def of_programs(data: MeasuredDataset, programs: Programs) -> MeasuredDataset:
    """Some programs of a dataset; all tasks, even those without a program left."""
    kept = np.sort(programs)
    return replace(
        data,
        task_index=data.task_index[kept],
        latencies=data.latencies[kept],
        starts=data.starts[kept],
        counts=data.counts[kept],
    )


def with_labels(data: MeasuredDataset, target: int, labelled: Programs) -> MeasuredDataset:
    """The dataset without the other measurements of the target.

    Labels are relative to the fastest program among those that are labelled, since no other is known.
    """
    latencies = data.latencies.copy()
    hidden = np.ones(len(data), bool)
    hidden[labelled] = False
    latencies[hidden, target] = np.nan
    return replace(data, latencies=latencies)


def measured_on(data: MeasuredDataset, target: int) -> Programs:
    """Programs that were measured on the target; a failure is a label too, since it cost a measurement."""
    return np.flatnonzero(~np.isnan(data.latencies[:, target])).astype(np.int64)
