"""Top-k: how close the best of a model's k top picks comes to the best program.

    top-k = sum_m sum_s min_latency(m, s) * weight(m, s)
          / sum_m sum_s min_{i <= k} latency(m, s, i) * weight(m, s)

m a network, s a subgraph, weight how often s occurs in m, i the rank by score (Zhai et al., ASPLOS 2023,
section 6.1). Programs whose measurement failed are no candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RANDOM_DRAWS = 10_000
"""Random picks that a random baseline averages over."""


@dataclass(frozen=True)
class RankedTask:
    """A task's programs on one platform, with the scores that a model gives them."""

    latencies: NDArray[np.float64]
    """(n,) finite seconds, n >= 1."""
    scores: NDArray[np.float64]
    """(n,) higher is better."""
    weight: float = 1.0
    """How often the task occurs in its network."""

    def best_of(self, k: int, seed: int = 0) -> float:
        """Lowest latency among the k programs with the highest scores; ties are broken by chance, seeded."""
        chance = np.random.default_rng(seed).permutation(len(self.scores))
        chosen = np.lexsort((chance, -self.scores))[:k]
        return float(self.latencies[chosen].min())


@dataclass(frozen=True)
class Chance:
    """What a random pick reaches: the mean over many, and where nine of ten of them fall."""

    mean: float
    low: float
    """5th percentile."""
    high: float
    """95th percentile."""


def top_k(tasks: Sequence[RankedTask], k: int, seed: int = 0) -> float:
    """Top-k of the tasks of one network, or of several."""
    best = sum(task.latencies.min() * task.weight for task in tasks)
    return float(best / sum(task.best_of(k, seed) * task.weight for task in tasks))


def mean_top_k(tasks: Sequence[RankedTask], k: int, seed: int = 0) -> float:
    """Mean over tasks of each task's own top-k: slow tasks count no more than fast ones."""
    return float(np.mean([task.latencies.min() / task.best_of(k, seed) for task in tasks]))


def random_top_k(tasks: Sequence[RankedTask], k: int, seed: int = 0, draws: int = RANDOM_DRAWS) -> Chance:
    """Top-k of scores drawn at random."""
    weights = np.array([task.weight for task in tasks])
    best = np.array([task.latencies.min() for task in tasks])
    return _chance((best @ weights) / (weights @ _random_best(tasks, k, seed, draws)))


def random_mean_top_k(
    tasks: Sequence[RankedTask], k: int, seed: int = 0, draws: int = RANDOM_DRAWS
) -> Chance:
    """Mean over tasks of top-k, of scores drawn at random."""
    best = np.array([task.latencies.min() for task in tasks])
    return _chance((best[:, None] / _random_best(tasks, k, seed, draws)).mean(0))


def _chance(values: NDArray[np.float64]) -> Chance:
    low, high = np.percentile(values, (5, 95))
    return Chance(float(values.mean()), float(low), float(high))


def _random_best(tasks: Sequence[RankedTask], k: int, seed: int, draws: int) -> NDArray[np.float64]:
    """(tasks, draws): lowest latency among k programs drawn without replacement."""
    rng = np.random.default_rng(seed)
    picked = np.empty((len(tasks), draws))
    for i, task in enumerate(tasks):
        n = len(task.latencies)
        # The best of the k has r faster programs before it, none of them drawn: P(more than r) is the product
        # of (n - k - j) / (n - j) over j <= r.
        j = np.arange(n)
        more = np.cumprod(np.maximum(n - min(k, n) - j, 0) / (n - j))
        rank = np.searchsorted(-more, -rng.random(draws), side="right")
        picked[i] = np.sort(task.latencies)[np.minimum(rank, n - 1)]
    return picked
