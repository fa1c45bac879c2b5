"""How much slower a model's own first choices are than the best program that is known of a task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tlp_tvm.metrics.bootstrap import Interval, over_tasks

KS = (1, 5, 16)
"""Choices of a task that are timed until the fastest of them counts."""


@dataclass(frozen=True)
class ChosenTask:
    """A task, and what its programs took.

    Attributes:
        desc: TVM's name of it.
        weights: network -> how often it appears there.
        known: seconds of the fastest program of earlier data, timed anew; infinity where there is none.
        chosen: model -> seconds of what it chose, its first choice first; infinity where one failed.
    """

    desc: str
    weights: dict[str, int]
    known: float
    chosen: dict[str, tuple[float, ...]]

    @property
    def best(self) -> float:
        """Seconds of the fastest program of all, whoever chose it."""
        return min([self.known, *(each for chosen in self.chosen.values() for each in chosen)])

    def ran(self, model: str) -> list[float]:
        """Seconds of a model's choices, without those that failed: a user's compiler refuses them too."""
        return [each for each in self.chosen[model] if math.isfinite(each)]


@dataclass(frozen=True)
class Regret:
    """Times as long as the best that the fastest of a model's first k choices takes.

    Attributes:
        model: its name.
        k: choices.
        mean: geometric mean over tasks.
        interval: of that, over tasks.
        network: the same of the sum over tasks, each as often as it appears in its networks: what a whole
            network pays.
        worst: of a single task.
        tasks: of which a choice ran.
    """

    model: str
    k: int
    mean: float
    interval: Interval
    network: float
    worst: float
    tasks: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def regrets(tasks: Sequence[ChosenTask], models: Sequence[str], ks: Sequence[int] = KS) -> list[Regret]:
    """Of each model and number of choices, over the tasks of which every model has a choice that ran.

    Args:
        tasks: with their timings.
        models: in the order of the rows.
        ks: numbers of choices.
    """
    judged = [task for task in tasks if all(task.ran(model) for model in models)]
    best = np.array([task.best for task in judged])
    often = np.array([sum(task.weights.values()) for task in judged], np.float64)
    rows = []
    for model in models:
        for k in ks:
            took = np.array([min(task.ran(model)[:k]) for task in judged])
            rows.append(_row(model, k, took, best, often))
    return rows


def _row(model: str, k: int, took: Any, best: Any, often: Any) -> Regret:
    if not len(took):
        nothing = math.nan
        return Regret(model, k, nothing, Interval(nothing, nothing), nothing, nothing, 0)
    logs = np.log(took / best)
    with np.errstate(invalid="ignore"):
        interval = over_tasks(len(logs), lambda times: np.exp((times @ logs) / times.sum(1)))
    network = float((often * took).sum() / (often * best).sum())
    return Regret(
        model, k, float(np.exp(logs.mean())), interval, network, float(np.exp(logs.max())), len(logs)
    )
