"""Rank correlation within a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Agreement:
    """How far scores order programs as their speeds do."""

    spearman: float
    """Spearman's rank correlation, in [-1, 1]; 0 where either side is constant."""
    kendall: float
    """Kendall's tau-b, in [-1, 1]; 0 where either side is constant."""
    pairwise_accuracy: float
    """Share of the pairs of unequal speed that the scores order rightly; a tie of scores counts half."""


def agreement(scores: ArrayLike, speeds: ArrayLike) -> Agreement:
    """Compare the order of scores with that of speeds; what chance gives is 0, 0 and 0.5."""
    from scipy.stats import kendalltau  # takes a while to import

    a, b = np.asarray(scores), np.asarray(speeds)
    unequal, unequal_scores = _unequal_pairs(b), _unequal_pairs(a)
    if not unequal or not unequal_scores:
        return Agreement(0.0, 0.0, 0.5)
    tau = float(kendalltau(a, b).statistic)
    right_less_wrong = tau * np.sqrt(float(unequal) * unequal_scores)
    return Agreement(spearman(a, b), tau, 0.5 + float(right_less_wrong) / (2 * unequal))


def mean_agreement(agreements: Sequence[Agreement]) -> Agreement:
    """The mean of at least one."""

    def of(name: str) -> float:
        return float(np.mean([getattr(each, name) for each in agreements]))

    return Agreement(of("spearman"), of("kendall"), of("pairwise_accuracy"))


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


def _unequal_pairs(values: NDArray[np.generic]) -> int:
    counts = np.unique(values, return_counts=True)[1].astype(object)  # counts squared may not fit 64 bits
    n = len(values)
    return int(n * (n - 1) - (counts * (counts - 1)).sum()) // 2
