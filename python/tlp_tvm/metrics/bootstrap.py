"""Bootstrap intervals over tasks: how far a figure depends on which tasks were taken.

Tasks are drawn with replacement, each with all of its seeds or searches, since those of one task resemble
each other. The draws are seeded: the same values give the same interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000
COVERED = 0.95
"""The share of the draws inside an interval."""


@dataclass(frozen=True)
class Interval:
    """Where `COVERED` of the draws fall; NaN where none could be computed."""

    low: float
    high: float


def over_tasks(
    tasks: int,
    figure: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    draws: int = DRAWS,
) -> Interval:
    """The percentile interval of a figure.

    Args:
        tasks: their number.
        figure: given (draws, tasks), how often each draw took each task, the (draws,) figures; NaN for a draw
            that has none.
        draws: how many.
    """
    if not tasks:
        return Interval(float("nan"), float("nan"))
    picked = np.random.default_rng(0).integers(tasks, size=(draws, tasks))
    times = np.zeros((draws, tasks))
    np.add.at(times, (np.arange(draws)[:, None], picked), 1.0)
    values = figure(times)
    values = values[np.isfinite(values)]
    if not len(values):
        return Interval(float("nan"), float("nan"))
    low, high = np.quantile(values, ((1 - COVERED) / 2, (1 + COVERED) / 2))
    return Interval(float(low), float(high))


def of_ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> Interval:
    """The interval of sum(above) / sum(below), one entry of each per task: a mean where `below` counts."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return over_tasks(len(above), lambda times: (times @ above) / (times @ below))
