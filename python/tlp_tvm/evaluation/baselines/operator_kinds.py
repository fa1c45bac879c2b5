"""What operators a task has, as TenSet tells its models: marks that stand behind each row of features.

TenSet looks for words in the text of the task's computation. A dataset has the compiler's name of the
function and the shapes instead, which say the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.reading.measured import MeasuredTask

KINDS = ("max", "min", "add", "conv2d", "winograd", "depthwise", "dense", "softmax", "batch_matmul")
_WORDS = {"max": ("nn_relu", "max", "clip"), "min": ("clip",)}
"""What a name has where a task has a kind, if it is not the kind's own word."""


def kinds_of(workload_key: str, description: str | None) -> NDArray[np.float32]:
    """(K,) ones where a task has a kind of `KINDS`; zeros without a description."""
    name, marks = description or "", np.zeros(len(KINDS), np.float32)
    for i, kind in enumerate(KINDS):
        marks[i] = any(word in name for word in _WORDS.get(kind, (kind,)))
    if marks[KINDS.index("conv2d")] and _has_depthwise_weights(workload_key):
        marks[KINDS.index("depthwise")] = 1
    return marks


def kinds_of_tasks(tasks: Sequence[MeasuredTask]) -> NDArray[np.float32]:
    """(T, K) of the tasks of a dataset."""
    marks = [kinds_of(task.workload_key, task.description) for task in tasks]
    return np.array(marks, np.float32).reshape(len(tasks), len(KINDS))


def marked(rows: NDArray[np.float32], marks: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows with their tasks' marks behind them.

    Args:
        rows: (S, columns).
        marks: (S, K), or (K,) of the one task that all are of.
    """
    return np.hstack([rows, np.broadcast_to(marks, (len(rows), len(KINDS)))])


def _has_depthwise_weights(workload_key: str) -> bool:
    """Whether a tensor has the shape (h, w, C, 1), or (C / c, 1, h, w, 1, c)."""
    try:
        shapes = json.loads(workload_key)[1:]
    except (ValueError, TypeError):
        return False
    return any(
        isinstance(shape, list)
        and ((len(shape) == 4 and shape[3] == 1) or (len(shape) == 6 and shape[1] == shape[4] == 1))
        for shape in shapes[1:]
    )
