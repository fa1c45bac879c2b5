"""A Gaussian process over embeddings on top of a model's score, fitted to a task's measurements.

Near measured programs their measurements count, far from all of them the score does. How near is near, how
much the measurements scatter and how far speeds stray from the score is what makes the measurements most
likely (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapter 5): tasks differ, and
the more of one is measured, the finer the differences that are left. The share of the score is fixed but for
a small variance, as it cannot be fitted: a search measures what the model scores high, and among those alone
the score says little, from which a free fit would conclude that low scores are as good.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SLOPE = 0.6
"""Units of speed for one unit of score."""

SLOPE_VARIANCE = 0.1
"""How much of that a task's own measurements may change, as a share of the process's variance."""

REACHES = (0.03, 0.1, 0.3, 1.0)
"""Squared length scales to choose from, in medians of the squared distance between measured programs."""

NOISES = (0.01, 0.03, 0.1, 0.3)
"""Variances of a measurement to choose from, as shares of the process's variance."""

REACH, NOISE = 0.1, 0.1
"""What is taken where there is little to choose by."""

VARIANCES = (0.1, 3.0)
"""Bounds of the process's variance, in squares of the unit of speed."""

ENOUGH = 12
"""Programs by which to choose."""


@dataclass(frozen=True)
class Process:
    """A fitted process; programs are rows, speeds are in any one unit."""

    columns: NDArray[np.intp]
    """Entries of an embedding that differ between the measured programs."""
    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    programs: NDArray[np.float32]
    """(n, columns), centred and scaled."""
    reach: float
    noise: float
    variance: float
    precision: NDArray[np.float64]
    """(n, n) inverse of the measurements' covariance over `variance`."""
    scores: NDArray[np.float32]
    """(n,), centred."""
    score_centre: float
    weights: NDArray[np.float64]
    """(n,)"""
    speed_centre: float
    """Of a program that is far from all measured ones and has a score like theirs."""

    @classmethod
    def fitted(
        cls, rows: NDArray[np.float32], scores: NDArray[np.float32], speeds: NDArray[np.float64]
    ) -> Process:
        """Fit.

        Args:
            rows: (n, D) embeddings.
            scores: (n,) of the model.
            speeds: (n,).
        """
        deviation = rows.std(0)
        columns = np.flatnonzero(deviation > 1e-6)
        centre, scale = rows[:, columns].mean(0), deviation[columns]
        programs = (rows[:, columns] - centre) / scale
        distances = _distances(programs, programs)
        score_centre = float(scores.mean())
        better = scores - score_centre
        unexplained = speeds - speeds.mean() - SLOPE * better
        reach, noise, variance, precision = _likeliest(distances, better, unexplained)
        return cls(
            columns=columns,
            centre=centre,
            scale=scale,
            programs=programs,
            reach=reach,
            noise=noise,
            variance=variance,
            precision=precision,
            scores=better,
            score_centre=score_centre,
            weights=precision @ unexplained,
            speed_centre=float(speeds.mean()),
        )

    def expected(self, rows: NDArray[np.float32], scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Expected speed of programs.

        Args:
            rows: (N, D) embeddings.
            scores: (N,) of the model.

        Returns:
            (N,) in the unit of the speeds.
        """
        return self.expected_by(rows[:, self.columns], scores)

    def expected_by(self, entries: NDArray[np.float32], scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The same, by what it looks at alone.

        Args:
            entries: (N, columns) of the embeddings.
            scores: (N,) of the model.
        """
        better = scores - self.score_centre
        known = self._known(self._seen(entries), better)
        return np.asarray(self.speed_centre + SLOPE * better + known @ self.weights, np.float32)

    def covariance(self, rows: NDArray[np.float32], scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """What is left to learn of programs, after the measurements.

        Args:
            rows: (N, D) embeddings.
            scores: (N,) of the model.

        Returns:
            (N, N) covariance of their speeds, in squares of the unit.
        """
        better = scores - self.score_centre
        seen = self._seen(rows[:, self.columns])
        known = self._known(seen, better)
        between = _covariance(_distances(seen, seen), self.reach, better)
        return np.asarray(self.variance * (between - known @ self.precision @ known.T), np.float64)

    def _seen(self, entries: NDArray[np.float32]) -> NDArray[np.float32]:
        """Programs as the fit sees them."""
        return np.asarray((entries - self.centre) / self.scale, np.float32)

    def _known(self, seen: NDArray[np.float32], better: NDArray[np.float32]) -> NDArray[np.float64]:
        """(N, n) covariance with the measured programs, over `variance`."""
        near = np.exp(-_distances(seen, self.programs) / self.reach)
        return np.asarray(near + SLOPE_VARIANCE * better[:, None] * self.scores, np.float64)


def prior(
    embeddings: NDArray[np.float32], scores: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """What is known of a task's programs before any is measured.

    Args:
        embeddings: (N, L, E).
        scores: (N,) of the model.

    Returns:
        (N,) expected speed, around 0, and its (N, N) covariance.
    """
    rows = embeddings.reshape(len(embeddings), -1)
    deviation = rows.std(0)
    columns = np.flatnonzero(deviation > 1e-6)
    rows = (rows[:, columns] - rows[:, columns].mean(0)) / deviation[columns]
    better = scores - scores.mean()
    distances = _distances(rows, rows)
    between = _covariance(distances, REACH * _typical(distances), better)
    return np.asarray(SLOPE * better, np.float32), between


def _likeliest(
    distances: NDArray[np.float32], better: NDArray[np.float32], unexplained: NDArray[np.float64]
) -> tuple[float, float, float, NDArray[np.float64]]:
    """Reach, noise and variance under which the measurements are most likely, and the precision."""
    typical = _typical(distances)
    few = len(unexplained) < ENOUGH
    found: list[tuple[float, float, float, float, NDArray[np.float64], NDArray[np.float64]]] = []
    for reach in (REACH,) if few else REACHES:
        between = _covariance(distances, reach * typical, better)
        values, vectors = np.linalg.eigh(between)  # once: noise adds itself to every value
        projected = (vectors.T @ unexplained) ** 2
        for noise in (NOISE,) if few else NOISES:
            noisy = np.maximum(values, 0.0) + noise
            variance = 1.0 if few else float(np.clip(np.mean(projected / noisy), *VARIANCES))
            likelihood = -0.5 * float((projected / noisy).sum() / variance + np.log(variance * noisy).sum())
            found.append((likelihood, reach * typical, noise, variance, vectors, noisy))
    _, reach, noise, variance, vectors, noisy = max(found, key=lambda each: each[0])
    return reach, noise, variance, (vectors / noisy) @ vectors.T


def _covariance(
    distances: NDArray[np.float32], reach: float, better: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(n, n) of programs' speeds, over the variance."""
    return np.asarray(np.exp(-distances / reach) + SLOPE_VARIANCE * np.outer(better, better), np.float64)


def _distances(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, n) squared."""
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1)
    return np.asarray(np.maximum(squares - 2 * a @ b.T, 0), np.float32)


def _typical(distances: NDArray[np.float32]) -> float:
    """Median of the distances between programs that differ."""
    apart = distances[distances > 1e-3]
    return float(np.median(apart)) if len(apart) else 1.0 / REACH
