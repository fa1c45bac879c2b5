"""XGBoost on a table with one row per program, by task."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.errors import DatasetError

if TYPE_CHECKING:
    from types import ModuleType

PARAMETERS: dict[str, Any] = {
    "eta": 0.1,
    "max_depth": 6,
    "subsample": 0.8,
    "colsample_bytree": 0.5,
    "tree_method": "hist",
    "max_bin": 64,
}

PAIRS: dict[str, Any] = {"lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 8}
"""Of rank:pairwise: random partners within the task, since every program counts, not only the first."""

ROUNDS_SEEN = 30
"""Trees for the labels of a task that is being searched."""


ROWS_A_THREAD = 50_000


def load_xgboost() -> ModuleType:
    """The module.

    Raises:
        DatasetError: it is not installed.
    """
    try:
        import xgboost
    except ImportError as error:
        raise DatasetError(
            f"`baselines`: expected the package xgboost, found {error}; pip install 'tlp-tvm[ansor]', or "
            "leave the baselines xgboost-* out"
        ) from error
    return xgboost


def common_parameters(seed: int, rows: int) -> dict[str, Any]:
    """What all of its models have: quiet, seeded, and threads by the size of the table.

    Threads wait for each other at every node of a tree. On a small table, and on a machine that is busy with
    other work, two are ten times slower than one.
    """
    threads = min(len(os.sched_getaffinity(0)), 1 + rows // ROWS_A_THREAD)
    return {"seed": seed, "nthread": threads, "verbosity": 0}


def boost(
    table: NDArray[np.float32],
    labels: NDArray[Any],
    tasks: NDArray[Any],
    objective: str,
    rounds: int,
    seed: int,
    start: Any = None,
) -> Any:
    """Fit a model.

    Args:
        table: (n, columns).
        labels: (n,) within tasks, in [0, 1].
        tasks: (n,) ascending.
        objective: rank:pairwise compares within tasks; reg:squarederror fits the labels.
        rounds: trees.
        seed: of the rows and columns that a tree sees.
        start: a model of the same objective that gets these trees on top, in a copy.

    Returns:
        `xgboost.Booster`.
    """
    xgboost = load_xgboost()
    ranks = objective.startswith("rank:")
    data = xgboost.DMatrix(table, labels, nthread=1, **({"qid": tasks} if ranks else {}))
    parameters = common_parameters(seed, len(table)) | PARAMETERS | {"objective": objective}
    if ranks:
        parameters |= PAIRS
    return xgboost.train(parameters, data, rounds, xgb_model=start)


def scores_of(model: Any, table: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n,) raw predictions."""
    data = load_xgboost().DMatrix(table, nthread=1)
    return np.asarray(model.predict(data, output_margin=True), np.float64)
