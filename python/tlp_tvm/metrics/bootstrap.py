"""Bootstrap intervals over tasks: how far a figure depends on which tasks were taken.

Tasks are drawn with replacement, each with all of its seeds or searches, since those of one task resemble
each other. The draws are seeded: the same values give the same interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

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
    values = figure(_times(tasks, draws))
    values = values[np.isfinite(values)]
    if not len(values):
        return Interval(float("nan"), float("nan"))
    low, high = np.quantile(values, ((1 - COVERED) / 2, (1 + COVERED) / 2))
    return Interval(float(low), float(high))


def of_ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> Interval:
    """The interval of sum(above) / sum(below): a mean over tasks where `below` is 1 or a count.

    Args:
        above: (tasks,) or (tasks, seeds); with seeds, the figure is the mean of their ratios.
        below: of the same shape.
    """
    a, b = (np.asarray(values).reshape(len(above), -1) for values in (above, below))
    with np.errstate(invalid="ignore", divide="ignore"):
        return over_tasks(len(a), lambda times: ((times @ a) / (times @ b)).mean(1))


@lru_cache(maxsize=4)
def _times(tasks: int, draws: int) -> NDArray[np.float64]:
    """(draws, tasks): how often each draw takes each task."""
    picked = np.random.default_rng(0).integers(tasks, size=(draws, tasks))
    places = picked + tasks * np.arange(draws)[:, None]
    return np.bincount(places.ravel(), minlength=draws * tasks).reshape(draws, tasks).astype(np.float64)
