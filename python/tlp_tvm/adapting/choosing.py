"""Chooses the programs to measure: not only the best scores, which are often alike.

A batch is picked one by one by the upper confidence bound: the expected speed plus part of its uncertainty.
Each pick discounts what it would already teach, so that the next pick differs (GP-BUCB: Desautels, Krause and
Burdick, JMLR 2014, without their change of the factor).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

OPTIMISM = 1.0
"""Standard deviations that the unknown counts."""


def choose_batch(
    expected: NDArray[np.float32], covariance: NDArray[np.float64], count: int, noise: float
) -> list[int]:
    """Choose programs to measure together.

    Args:
        expected: (N,) speeds, as `TaskAdapter.speeds` has them.
        covariance: (N, N) of what is not known of them.
        count: how many.
        noise: variance of a measurement.

    Returns:
        Indices, the first choice first; all of them where there are no more than `count`.
    """
    left = covariance.astype(np.float64, copy=True)
    chosen: list[int] = []
    free = np.ones(len(expected), bool)
    while len(chosen) < min(count, len(expected)):
        hope = expected + OPTIMISM * np.sqrt(np.maximum(np.diag(left), 0))
        i = int(np.argmax(np.where(free, hope, -np.inf)))
        chosen.append(i)
        free[i] = False
        left -= np.outer(left[:, i], left[i]) / (left[i, i] + noise)
    return chosen
