"""Which tasks a training's card judges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.training.runs.splits import judged_split


def test_platforms_without_test_programs_are_trained_on_and_not_judged(built: Path) -> None:
    data = load_measured(built, FeatureLayout.preset("ansor"))
    judged = judged_split(data)
    assert judged is not None
    is_test = np.array([task.split == "test" for task in data.tasks])[data.task_index]
    elsewhere = np.where(is_test[:, None], np.nan, data.latencies)
    assert judged_split(replace(data, latencies=elsewhere)) is None
