"""How many labels of the target, and what is left of a dataset when only those are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.records import MeasuredDataset
from tlp_tvm.errors import DatasetError

Programs = NDArray[np.int64]

ALL = "all"


@dataclass(frozen=True)
class LabelCount:
    """A number of labels as it was asked for."""

    asked: str
    """ "430", "7%" or "all"."""

    def of(self, there: int) -> int:
        """How many of those that are there; never more."""
        if self.asked == ALL:
            return there
        if self.asked.endswith("%"):
            return round(there * float(self.asked[:-1]) / 100)
        return min(int(self.asked), there)


def label_counts(text: str) -> list[LabelCount]:
    """Read "0,50,7%,all".

    Raises:
        DatasetError: a part is no number, share or "all".
    """
    counts = []
    for part in (part.strip().lower() for part in text.split(",")):
        number = part.removesuffix("%")
        share = part.endswith("%") and number.replace(".", "", 1).isdigit() and float(number) <= 100
        if not (share or (number.isdigit() and not part.endswith("%")) or part == ALL):
            raise DatasetError(
                f'--labels: expected numbers, shares or "{ALL}" such as 0,50,7%,all, found "{part}"'
            )
        counts.append(LabelCount(part))
    return counts


def of_platforms(data: MeasuredDataset, columns: Sequence[int]) -> MeasuredDataset:
    """Some platforms of a dataset, in this order; all programs."""
    chosen = list(columns)
    return replace(
        data, platforms=tuple(data.platforms[c] for c in chosen), latencies=data.latencies[:, chosen]
    )


def of_programs(data: MeasuredDataset, programs: Programs) -> MeasuredDataset:
    """Some programs of a dataset; all tasks, though some may have no program left."""
    kept = np.sort(programs)
    return replace(
        data,
        task_index=data.task_index[kept],
        latencies=data.latencies[kept],
        starts=data.starts[kept],
        counts=data.counts[kept],
    )


def with_labels(data: MeasuredDataset, target: int, labelled: Programs) -> MeasuredDataset:
    """The dataset as if nobody had measured other programs than these on the target.

    Their labels are relative to the fastest program *among them*, which is all that is known.
    """
    latencies = data.latencies.copy()
    hidden = np.ones(len(data), bool)
    hidden[labelled] = False
    latencies[hidden, target] = np.nan
    return replace(data, latencies=latencies)


def measured_on(data: MeasuredDataset, target: int) -> Programs:
    """Programs that were measured on the target; a failure is a label too, and was paid for."""
    return np.flatnonzero(~np.isnan(data.latencies[:, target])).astype(np.int64)
