"""What a search has measured of a task, on top of what a model has learned before.

A Gaussian process over embeddings, one a task, on top of the model's score: near measured programs their
measurements count, far from all of them the score does. The share of the score is fixed but for a small
variance, as it cannot be fitted: a search measures what the model scores high, and among those alone the
score says little, from which a free fit would conclude that low scores are as good. Fitting takes
milliseconds for the few hundred programs that a task is measured for.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MINIMUM = 4
"""Programs that ran, before which a task is left to the model."""

MOST = 512
"""Programs that are remembered: the fastest half of that, and the latest."""

NOISE = 0.1
"""Variance of the measurements around the process, whose own is 1."""

SLOPE = 0.4
"""Logarithm of the speed for one unit of score: what models trained on pairs show on tasks new to them."""

SLOPE_VARIANCE = 0.1
"""How much of that a task's own measurements may change, beside the process's variance of 1."""

REACH = 0.2
"""Squared length scale, in medians of the squared distance between measured programs."""

FAILED = 1.0
"""How much worse than the slowest program, in logarithms of seconds, one counts that failed."""


@dataclass(frozen=True)
class _Fit:
    """A fitted process; programs are rows."""

    columns: NDArray[np.intp]
    """Entries of an embedding that differ between the measured programs."""
    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    programs: NDArray[np.float32]
    """(n, columns), centred and scaled."""
    squares: NDArray[np.float32]
    """(n,) squared length of each row of `programs`."""
    reach: float
    scores: NDArray[np.float32]
    """(n,), centred."""
    score_centre: float
    weights: NDArray[np.float32]
    """(n,)"""
    speed_centre: float
    """Of a program that is far from all measured ones and has a score like theirs."""


class TaskAdapter:
    """Learns the speed of one task's programs from its measurements; safe to use from several threads."""

    def __init__(self) -> None:
        self._embeddings: NDArray[np.float32] | None = None
        self._scores = np.empty(0, np.float32)
        self._speeds = np.empty(0)
        self._fit: _Fit | None = None
        self._lock = threading.Lock()

    @property
    def ready(self) -> bool:
        """Whether there is enough to go by."""
        return int(np.isfinite(self._speeds).sum()) >= MINIMUM

    def learn(
        self, embeddings: NDArray[np.float32], scores: NDArray[np.float32], latencies: NDArray[np.float64]
    ) -> None:
        """Take in measurements.

        Args:
            embeddings: (n, L, E).
            scores: (n,) of the model.
            latencies: (n,) seconds; infinity where a program failed.
        """
        rows = embeddings.reshape(len(embeddings), -1)
        with self._lock:
            known = rows if self._embeddings is None else np.concatenate([self._embeddings, rows])
            self._scores = np.concatenate([self._scores, scores])
            self._speeds = np.concatenate([self._speeds, -np.log(latencies)])
            keep = _worth_keeping(self._speeds)
            self._embeddings, self._scores, self._speeds = known[keep], self._scores[keep], self._speeds[keep]
            self._fit = None

    @property
    def measured(self) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """The programs that are remembered: embeddings (n, L * E), and latencies (n,) in seconds."""
        with self._lock:
            rows = np.empty((0, 0), np.float32) if self._embeddings is None else self._embeddings
            return rows.copy(), np.exp(-self._speeds)

    def speeds(self, embeddings: NDArray[np.float32], scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Expected speed of programs.

        Args:
            embeddings: (N, L, E).
            scores: (N,) of the model.

        Returns:
            (N,) logarithm of the speed relative to the fastest measured program: 0 is as fast.
        """
        with self._lock:
            fit = self._fit = self._fit or self._fitted()
        rows = (embeddings.reshape(len(embeddings), -1)[:, fit.columns] - fit.centre) / fit.scale
        distances = (rows**2).sum(1)[:, None] + fit.squares - 2 * rows @ fit.programs.T
        near = np.exp(-np.maximum(distances, 0) / fit.reach)  # (N, n)
        better = scores - fit.score_centre
        slopes = SLOPE_VARIANCE * better[:, None] * fit.scores
        expected = fit.speed_centre + SLOPE * better + (near + slopes) @ fit.weights
        return np.asarray(expected, np.float32)

    def _fitted(self) -> _Fit:
        assert self._embeddings is not None
        ran = np.isfinite(self._speeds)
        speeds = np.where(ran, self._speeds, self._speeds[ran].min() - FAILED)
        deviation = self._embeddings.std(0)
        columns = np.flatnonzero(deviation > 1e-6)
        centre, scale = self._embeddings[:, columns].mean(0), deviation[columns]
        programs = (self._embeddings[:, columns] - centre) / scale
        squares = (programs**2).sum(1)
        distances = np.maximum(squares[:, None] + squares - 2 * programs @ programs.T, 0)
        apart = distances[distances > 1e-3]
        reach = REACH * float(np.median(apart)) if len(apart) else 1.0
        score_centre = float(self._scores.mean())
        scores = self._scores - score_centre
        covariance = np.exp(-distances / reach) + SLOPE_VARIANCE * np.outer(scores, scores)
        unexplained = speeds - speeds.mean() - SLOPE * scores
        weights = np.linalg.solve(covariance + NOISE * np.eye(len(speeds)), unexplained)
        return _Fit(
            columns=columns,
            centre=centre,
            scale=scale,
            programs=programs,
            squares=squares,
            reach=reach,
            scores=scores,
            score_centre=score_centre,
            weights=np.asarray(weights, np.float32),
            speed_centre=float(speeds.mean() - speeds.max()),
        )


def _worth_keeping(speeds: NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices, in order, of the programs to remember."""
    if len(speeds) <= MOST:
        return np.arange(len(speeds))
    fastest = np.argsort(-speeds, kind="stable")[: MOST // 2]
    latest = np.setdiff1d(np.arange(len(speeds)), fastest)[-(MOST - MOST // 2) :]
    return np.sort(np.concatenate([fastest, latest]))
