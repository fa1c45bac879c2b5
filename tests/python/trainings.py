"""Tiny trainings: how tests run them, interrupt them and compare them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from programs import tiny_settings
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.model.tlp import TLPSettings
from tlp_tvm.training.loop import train
from tlp_tvm.training.state import Trained
from tlp_tvm.training.train_settings import TrainSettings

CPU = torch.device("cpu")

SETTINGS = TrainSettings(epochs=6, learning_rate=3e-3, batch_programs=36, average=0.5)

SHORT = TrainSettings(epochs=3, learning_rate=3e-3, batch_programs=36, list_programs=10, average=0.5)
"""With tasks cut into several lists."""

SPLITS = ("train",) * 8 + ("validation",) * 2 + ("test",)


class Killed(Exception):
    """Stands for the end of the process."""


def run(
    data: MeasuredDataset,
    folder: Path,
    settings: TrainSettings = SETTINGS,
    model: TLPSettings | None = None,
    **options: Any,
) -> Trained:
    """Train on the train split, and choose the epoch on the validation split, or else the test split."""
    folder.mkdir(exist_ok=True)
    held_out = data.of_split("validation" if "validation" in data.splits else "test")
    model = model or tiny_settings(dropout=0.1)
    return train(data.of_split("train"), held_out, model, settings, folder, device="cpu", **options)


def assert_same(a: Trained, b: Trained) -> None:
    assert a.history == b.history
    assert a.weights.keys() == b.weights.keys()
    assert all(torch.equal(a.weights[name], b.weights[name]) for name in a.weights)
