"""Labels that were not measured, imputed from the same programs' latencies on other platforms.

Within a task, the logarithm of a latency on the target is a weighted sum of those on the other platforms, and
a level of the task's own. The weights are fitted to the known labels; without any they are equal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.evaluation.rankers import Programs

PRIOR = 30.0
"""Strength of the equal weights, in squared logarithms. Chosen of 1 to 1,000 on the training tasks of
`datasets/` with 7% of their labels, by the speed of the fastest guess of a task: 0.896, 0.837 and 0.858 of
the best on the three platforms (of 1: 0.880, 0.837 and 0.864). Equal weights average the noise of two
measurements, too."""

LEVEL_PRIOR = 1.0
"""Strength of the level that all tasks share, in labels."""


def with_imputed(data: MeasuredDataset, target: int, labelled: Programs) -> MeasuredDataset:
    """The dataset with the target's column known for every program that ran on all other platforms.

    Args:
        data: training tasks.
        target: the target's column. Only its latencies of `labelled` are read.
        labelled: programs whose latency on the target is known; they keep it.
    """
    others = [column for column in range(len(data.platforms)) if column != target]
    known = np.zeros(len(data), bool)
    known[labelled] = True
    logs = np.log(data.latencies[:, others])
    usable = np.asarray(np.isfinite(logs).all(1))
    fitted = usable & known & np.isfinite(data.latencies[:, target])
    tasks, count = data.task_index, len(data.tasks)
    per_task = np.bincount(tasks[fitted], minlength=count)
    x, y = logs[fitted], np.log(data.latencies[fitted, target])

    def level(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means over each task's fitted programs."""
        return np.bincount(tasks[fitted], values, minlength=count) / np.maximum(per_task, 1)

    x_levels = np.stack([level(column) for column in x.T], 1)
    within, response = x - x_levels[tasks[fitted]], y - level(y)[tasks[fitted]]
    equal = np.full(len(others), 1.0 / len(others))
    gram = within.T @ within + PRIOR * np.eye(len(others))
    weights = equal + np.linalg.solve(gram, within.T @ (response - within @ equal))
    residual = y - x @ weights
    shared = float(residual.mean()) if len(residual) else 0.0
    levels = shared + per_task * (level(residual) - shared) / (per_task + LEVEL_PRIOR)
    guess = np.where(usable, np.exp(np.where(usable[:, None], logs, 0.0) @ weights + levels[tasks]), np.nan)
    latencies = data.latencies.copy()
    latencies[:, target] = np.where(known, data.latencies[:, target], guess)
    return replace(data, latencies=latencies)
