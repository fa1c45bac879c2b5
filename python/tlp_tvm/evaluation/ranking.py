"""Rank correlation within a task."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks from 0 for the lowest; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts + 1) / 2.0)[inverse]


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Spearman's rank correlation, in [-1, 1]; 0 where either side is constant."""
    x, y = ranks(a), ranks(b)
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else 0.0
