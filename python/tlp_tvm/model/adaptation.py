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

UNIT = 0.25
"""Of what is fitted: the speed relative to the fastest measured program, whose own is 1. Not its logarithm: a
search has to tell fast programs from each other, and how slow the slow ones are says little of that."""

NOISE = 0.1
"""Variance of the measurements around the process, whose own is 1."""

SLOPE = 0.6
"""Units of speed for one unit of score."""

SLOPE_VARIANCE = 0.1
"""How much of that a task's own measurements may change, beside the process's variance of 1."""

REACH = 0.1
"""Squared length scale, in medians of the squared distance between measured programs."""

FAILED = -1.0
"""What a program that failed counts, in units; one that never ends would count 0."""


@dataclass(frozen=True)
class _Fit:
    """A fitted process; programs are rows."""

    columns: NDArray[np.intp]
    """Entries of an embedding that differ between the measured programs."""
    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    programs: NDArray[np.float32]
    """(n, columns), centred and scaled."""
    reach: float
    covariance: NDArray[np.float64]
    """(n, n) of the measurements, noise included."""
    scores: NDArray[np.float32]
    """(n,), centred."""
    score_centre: float
    weights: NDArray[np.float32]
    """(n,)"""
    speed_centre: float
    """Of a program that is far from all measured ones and has a score like theirs."""


@dataclass(frozen=True)
class Measured:
    """The measurements that are remembered of one task.

    Attributes:
        embeddings: (n, L, E).
        speeds: (n,) minus the logarithm of the seconds; minus infinity where a program failed.
        learned: measurements taken in so far; of many, those neither fast nor late are forgotten.
    """

    embeddings: NDArray[np.float32]
    speeds: NDArray[np.float64]
    learned: int


class TaskAdapter:
    """Learns the speed of one task's programs from its measurements; safe to use from several threads."""

    def __init__(self, known: Measured | None = None, scores: NDArray[np.float32] | None = None) -> None:
        """Begin, or go on.

        Args:
            known: what `measured` gave.
            scores: (n,) of the model, of the same programs.
        """
        self._shape: tuple[int, ...] = (0, 0)
        self._embeddings: NDArray[np.float32] | None = None
        self._scores = np.empty(0, np.float32)
        self._speeds = np.empty(0)
        self._learned = 0
        self._fit: _Fit | None = None
        self._lock = threading.Lock()
        if known is not None and scores is not None:
            self.learn(known.embeddings, scores, np.exp(-known.speeds))
            self._learned = known.learned

    @property
    def measured(self) -> Measured:
        """What it remembers."""
        with self._lock:
            rows = np.empty((0, 0), np.float32) if self._embeddings is None else self._embeddings
            return Measured(rows.reshape(-1, *self._shape), self._speeds, self._learned)

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
            self._shape = embeddings.shape[1:]
            self._learned += len(rows)
            keep = _worth_keeping(self._speeds)
            self._embeddings, self._scores, self._speeds = known[keep], self._scores[keep], self._speeds[keep]
            self._fit = None

    def speeds(self, embeddings: NDArray[np.float32], scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Expected speed of programs.

        Args:
            embeddings: (N, L, E).
            scores: (N,) of the model.

        Returns:
            (N,) how much faster than the fastest measured program, in `UNIT`s of its speed: 0 is as fast.
        """
        fit = self._current()
        _, near = _near(fit, embeddings)
        better = scores - fit.score_centre
        slopes = SLOPE_VARIANCE * better[:, None] * fit.scores
        expected = fit.speed_centre + SLOPE * better + (near + slopes) @ fit.weights
        return np.asarray(expected, np.float32)

    def covariance(self, embeddings: NDArray[np.float32], scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """What is left to learn of programs, after the measurements.

        Args:
            embeddings: (N, L, E).
            scores: (N,) of the model.

        Returns:
            (N, N) covariance of their speeds, in squares of `UNIT`.
        """
        fit = self._current()
        rows, near = _near(fit, embeddings)
        better = scores - fit.score_centre
        between = np.exp(-_distances(rows, rows) / fit.reach) + SLOPE_VARIANCE * np.outer(better, better)
        known = near + SLOPE_VARIANCE * better[:, None] * fit.scores
        return np.asarray(between - known @ np.linalg.solve(fit.covariance, known.T), np.float64)

    def _current(self) -> _Fit:
        with self._lock:
            fit = self._fit = self._fit or self._fitted()
            return fit

    def _fitted(self) -> _Fit:
        assert self._embeddings is not None
        ran = np.isfinite(self._speeds)
        speeds = np.where(ran, np.exp(self._speeds - self._speeds[ran].max()) / UNIT, FAILED)
        deviation = self._embeddings.std(0)
        columns = np.flatnonzero(deviation > 1e-6)
        centre, scale = self._embeddings[:, columns].mean(0), deviation[columns]
        programs = (self._embeddings[:, columns] - centre) / scale
        distances = _distances(programs, programs)
        reach = _reach(distances)
        score_centre = float(self._scores.mean())
        scores = self._scores - score_centre
        covariance = np.exp(-distances / reach) + SLOPE_VARIANCE * np.outer(scores, scores)
        covariance += NOISE * np.eye(len(speeds))
        unexplained = speeds - speeds.mean() - SLOPE * scores
        weights = np.linalg.solve(covariance, unexplained)
        return _Fit(
            columns=columns,
            centre=centre,
            scale=scale,
            programs=programs,
            reach=reach,
            covariance=covariance,
            scores=scores,
            score_centre=score_centre,
            weights=np.asarray(weights, np.float32),
            speed_centre=float(speeds.mean() - speeds.max()),
        )


def _distances(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, n) squared."""
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1)
    return np.asarray(np.maximum(squares - 2 * a @ b.T, 0), np.float32)


def _near(fit: _Fit, embeddings: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Programs as the fit sees them, and how like each measured one they are, (N, n)."""
    rows = (embeddings.reshape(len(embeddings), -1)[:, fit.columns] - fit.centre) / fit.scale
    return rows, np.exp(-_distances(rows, fit.programs) / fit.reach)


def prior(
    embeddings: NDArray[np.float32], scores: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """What is known of a task's programs before any is measured.

    Args:
        embeddings: (N, L, E).
        scores: (N,) of the model.

    Returns:
        (N,) expected speed in `UNIT`s, around 0, and its (N, N) covariance.
    """
    rows = embeddings.reshape(len(embeddings), -1)
    deviation = rows.std(0)
    columns = np.flatnonzero(deviation > 1e-6)
    rows = (rows[:, columns] - rows[:, columns].mean(0)) / deviation[columns]
    better = scores - scores.mean()
    distances = _distances(rows, rows)
    between = np.exp(-distances / _reach(distances)) + SLOPE_VARIANCE * np.outer(better, better)
    return np.asarray(SLOPE * better, np.float32), np.asarray(between, np.float64)


def _reach(distances: NDArray[np.float32]) -> float:
    apart = distances[distances > 1e-3]
    return REACH * float(np.median(apart)) if len(apart) else 1.0


def _worth_keeping(speeds: NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices, in order, of the programs to remember."""
    if len(speeds) <= MOST:
        return np.arange(len(speeds))
    fastest = np.argsort(-speeds, kind="stable")[: MOST // 2]
    latest = np.setdiff1d(np.arange(len(speeds)), fastest)[-(MOST - MOST // 2) :]
    return np.sort(np.concatenate([fastest, latest]))
