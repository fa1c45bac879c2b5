"""What a layout cuts from real programs, and the length and width that would cut almost nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.embedding import Embedding, EncodingReport
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.record_batch import RecordBatch

PROPOSAL_QUANTILE = 0.999
"""Share of programs that a proposed shape must hold whole."""

PROPOSAL_MULTIPLE = 8
"""Proposed sizes are multiples of this: rows of whole cache lines, and room for a little more."""


@dataclass
class LayoutStatistics:
    """How a layout fares over many programs. Fill with `add`, batch after batch.

    Attributes:
        layout: the layout under test.
        report: what it could not encode, summed.
        lengths: program length (primitives) -> how many programs.
        widths: values of a program's widest primitive, lists spilled -> how many programs.
    """

    layout: FeatureLayout
    report: EncodingReport = field(default_factory=EncodingReport)
    lengths: dict[int, int] = field(default_factory=dict)
    widths: dict[int, int] = field(default_factory=dict)

    def add(self, batch: RecordBatch) -> Embedding:
        """Count the programs of a batch. Returns their embeddings, which that takes."""
        features = batch.encode(self.layout, report=self.report)
        _count(self.lengths, batch.lengths)
        _count(self.widths, batch.programs.widths())
        return features

    @property
    def cut_share(self) -> float:
        """Share of programs that lose rows."""
        return self.report.cut_sequences / max(1, self.report.sequences)

    def proposal(self) -> tuple[int, int]:
        """The length and width of a flat layout that holds `PROPOSAL_QUANTILE` of the programs whole.

        Returns:
            (L, E): E counts the one-hot of the layout's kinds, then the widest primitive's values.
        """
        length = _quantile(self.lengths)
        width = len(self.layout.kinds) + _quantile(self.widths)
        return _round_up(length), _round_up(width)


def layout_statistics(batches: Iterable[RecordBatch], layout: FeatureLayout) -> LayoutStatistics:
    """Count what a layout cuts over all programs of `batches` (e.g. `iter_records(source)`)."""
    statistics = LayoutStatistics(layout)
    for batch in batches:
        statistics.add(batch)
    return statistics


def _count(histogram: dict[int, int], values: NDArray[np.int32]) -> None:
    for value, count in zip(*np.unique(values, return_counts=True), strict=True):
        histogram[int(value)] = histogram.get(int(value), 0) + int(count)


def _quantile(histogram: dict[int, int]) -> int:
    total = sum(histogram.values())
    seen = 0
    for value in sorted(histogram):
        seen += histogram[value]
        if seen >= PROPOSAL_QUANTILE * total:
            return value
    return 0


def _round_up(value: int) -> int:
    return max(1, -(-value // PROPOSAL_MULTIPLE)) * PROPOSAL_MULTIPLE
