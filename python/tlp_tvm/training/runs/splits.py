"""Splits of a run: tasks to learn from, tasks that choose the epoch, test tasks of the card."""

from __future__ import annotations

import numpy as np

from tlp_tvm.dataset.ranking import check_measured
from tlp_tvm.dataset.reading.holding_out import TEST_SPLIT, TRAIN_SPLIT, VALIDATION_SPLIT, fold_of
from tlp_tvm.dataset.reading.measured import MeasuredDataset

HOLD_OUT = 5
"""One training task in this many chooses the epoch of a dataset without a validation split."""


def learned_and_held_out(
    measured: MeasuredDataset, hold_out: int | None, seed: int
) -> tuple[MeasuredDataset, MeasuredDataset | None, int | str]:
    """Divide the tasks of a run.

    Args:
        measured: the whole dataset.
        hold_out: one training task in this many is held out; 0 holds out none. None takes the validation
            split, or one in `HOLD_OUT` if there is none.
        seed: of the choice.

    Returns:
        The tasks to learn from, those that choose the epoch, and what the card says of them.

    Raises:
        DatasetError: there are too few training tasks.
    """
    data = measured.of_split(TRAIN_SPLIT)
    if hold_out is None and VALIDATION_SPLIT in measured.splits:
        validation = measured.of_split(VALIDATION_SPLIT)
        if len(validation):  # its tasks may lack programs on the chosen platforms
            return data, validation, f"split {VALIDATION_SPLIT}"
    one_in = HOLD_OUT if hold_out is None else hold_out
    if not one_in:
        return data, None, 0
    return (*fold_of(data, 0, one_in, seed), one_in)


def judged_split(measured: MeasuredDataset) -> MeasuredDataset | None:
    """The tasks that the card judges; None if the dataset has no test split, or none on these platforms.

    Raises:
        DatasetError: a listed task has no program that ran on a platform. It is better to hear that before
            the training.
    """
    if TEST_SPLIT not in measured.splits:
        return None
    test = measured.of_split(TEST_SPLIT)
    if not np.isfinite(test.latencies).any():
        return None
    check_measured(test)
    return test
