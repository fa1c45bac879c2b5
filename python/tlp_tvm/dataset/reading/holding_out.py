"""Holds out whole tasks for validation: programs of one task are near-copies of each other."""

from __future__ import annotations

import numpy as np

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError

TRAIN_SPLIT = "train"
VALIDATION_SPLIT = "validation"
TEST_SPLIT = "test"


def fold_of(
    dataset: MeasuredDataset, fold: int, folds: int, seed: int
) -> tuple[MeasuredDataset, MeasuredDataset]:
    """One fold of a cross-validation over tasks.

    Returns:
        The tasks to train on and the tasks held out: about one in `folds`, at least one.

    Raises:
        DatasetError: there are fewer tasks than folds.
    """
    count = len(dataset.tasks)
    if count < max(folds, 2):
        raise DatasetError(
            f"dataset: expected at least {max(folds, 2)} tasks to hold some out, found {count}; measure more "
            "tasks, or hold out none (`hold_out` 0)"
        )
    shuffled = np.random.default_rng(seed).permutation(count)
    held_out = shuffled[fold::folds].tolist()
    return dataset.of_tasks(sorted(set(range(count)) - set(held_out))), dataset.of_tasks(held_out)
