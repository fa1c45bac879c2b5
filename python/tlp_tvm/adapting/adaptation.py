"""What a search measured of a task, added to what the model learned before.

A Gaussian process a task (`adapting.process`) on top of the model's score. Fitting takes milliseconds for the
few hundred programs that a task is measured for.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.process import Process

MINIMUM = 4
"""Programs that ran, before which a task is left to the model."""

MOST = 512
"""Programs that are remembered: the fastest half of that, and the latest."""

UNIT = 0.25
"""Of what is fitted: the speed relative to the fastest measured program, whose own is 1. Not its logarithm: a
search has to tell fast programs from each other, and how slow the slow ones are says little of that."""

FAILED = -1.0
"""What a program that failed counts, in units; one that never ends would count 0."""


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
        """Begin, or resume.

        Args:
            known: what `measured` gave.
            scores: (n,) of the model, of the same programs.
        """
        self._shape: tuple[int, ...] = (0, 0)
        self._embeddings: NDArray[np.float32] | None = None
        self._scores = np.empty(0, np.float32)
        self._speeds = np.empty(0)
        self._learned = 0
        self._fit: Process | None = None
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
        return self._current().expected(embeddings.reshape(len(embeddings), -1), scores)

    @property
    def columns(self) -> NDArray[np.intp]:
        """Entries of a flattened embedding that `speeds_by` looks at."""
        return self._current().columns

    def speeds_by(self, entries: NDArray[np.float32], scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The same as `speeds`, by those entries alone.

        Args:
            entries: (N, columns) of the embeddings.
            scores: (N,) of the model.
        """
        return self._current().expected_by(entries, scores)

    def covariance(self, embeddings: NDArray[np.float32], scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """What is left to learn of programs, after the measurements.

        Args:
            embeddings: (N, L, E).
            scores: (N,) of the model.

        Returns:
            (N, N) covariance of their speeds, in squares of `UNIT`.
        """
        return self._current().covariance(embeddings.reshape(len(embeddings), -1), scores)

    @property
    def noise(self) -> float:
        """Variance of a measurement, in squares of `UNIT`."""
        fit = self._current()
        return fit.noise * fit.variance

    def _current(self) -> Process:
        with self._lock:
            fit = self._fit = self._fit or self._fitted()
            return fit

    def _fitted(self) -> Process:
        assert self._embeddings is not None
        ran = np.isfinite(self._speeds)
        speeds = np.where(ran, np.exp(self._speeds - self._speeds[ran].max()) / UNIT, FAILED)
        return Process.fitted(self._embeddings, self._scores, speeds - speeds.max())


def _worth_keeping(speeds: NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices, in order, of the programs to remember."""
    if len(speeds) <= MOST:
        return np.arange(len(speeds))
    fastest = np.argsort(-speeds, kind="stable")[: MOST // 2]
    latest = np.setdiff1d(np.arange(len(speeds)), fastest)[-(MOST - MOST // 2) :]
    return np.sort(np.concatenate([fastest, latest]))
