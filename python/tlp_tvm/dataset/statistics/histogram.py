"""Distributions of many values in little memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Histogram:
    """Counts of values between ascending edges; values beyond the ends count in the end bins."""

    def __init__(self, edges: NDArray[np.float64]) -> None:
        self.edges = edges
        self.counts = np.zeros(len(edges) - 1, np.int64)

    def add(self, values: NDArray[np.float64]) -> None:
        """Count values."""
        bins = np.searchsorted(self.edges, values, side="right") - 1
        self.counts += np.bincount(np.clip(bins, 0, len(self.counts) - 1), minlength=len(self.counts))

    def __len__(self) -> int:
        return int(self.counts.sum())

    def quantile(self, share: float) -> float:
        """The middle of the bin that holds the quantile; NaN where nothing was counted."""
        if not len(self):
            return float("nan")
        i = int(np.searchsorted(np.cumsum(self.counts), share * len(self)))
        i = min(i, len(self.counts) - 1)
        return float((self.edges[i] + self.edges[i + 1]) / 2)
