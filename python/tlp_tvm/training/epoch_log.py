"""Metrics of a run's epochs: JSON lines, CSV with times, and TensorBoard if installed.

The JSON lines are the numbers alone: two runs of the same recipe write the same bytes. `metrics.csv` adds
how long each epoch took.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tlp_tvm.errors import TrainingError
from tlp_tvm.files import write_whole

EpochCallback = Callable[[dict[str, Any]], None]
"""Gets the entry of a finished epoch."""

BatchCallback = Callable[[int, int], None]
"""Gets how many labelled programs were trained on, each once an epoch, and of how many."""

METRICS = "metrics.jsonl"
TABLE = "metrics.csv"
BOARD = "tensorboard"


def write_metrics(folder: Path, history: list[dict[str, Any]], timings: list[dict[str, float]]) -> None:
    """Write both files, once there is something to write.

    Args:
        folder: of the run.
        history: an entry a finished epoch.
        timings: what its training took: "seconds", and "programs_per_second".
    """
    if not history:
        return
    write_whole(folder / METRICS, "".join(json.dumps(entry) + "\n" for entry in history))
    rows = [_flat(entry) | timing for entry, timing in zip(history, timings, strict=True)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(folder / TABLE, text.getvalue())


def check_finite(entry: dict[str, Any], folder: Path) -> None:
    """Check the loss of an epoch.

    Args:
        entry: of the epoch, "epoch" and "loss".
        folder: of the run, for the error.

    Raises:
        TrainingError: it is not finite.
    """
    if not math.isfinite(entry["loss"]):
        raise TrainingError(
            f"{folder}: epoch {entry['epoch']}: expected a finite loss, found {entry['loss']}: the "
            "programs' numbers are too large for the network; delete the folder and train in float32, or "
            "without --faithful, which scales them"
        )


def need_tensorboard() -> None:
    """Be sure that `board_of` will work.

    Raises:
        TrainingError: TensorBoard is not installed.
    """
    if importlib.util.find_spec("tensorboard") is None:
        raise TrainingError(
            "--tensorboard: expected the package tensorboard, found none; install it "
            f"(pip install tensorboard) or leave the option out: {TABLE} has the same numbers"
        )


def board_of(folder: Path) -> EpochCallback:
    """A callback that writes entries for TensorBoard, to a new folder in that of the run."""
    from torch.utils.tensorboard import SummaryWriter

    shutil.rmtree(folder / BOARD, ignore_errors=True)  # a resumed run writes all its epochs again
    writer = SummaryWriter(str(folder / BOARD))

    def tell(entry: dict[str, Any]) -> None:
        for name, value in _flat(entry).items():
            if name != "epoch":
                writer.add_scalar(name, value, entry["epoch"])
        writer.flush()

    return tell


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a_b": 1}."""
    flat: dict[str, Any] = {}
    for name, value in entry.items():
        nested = value if isinstance(value, dict) else None
        flat |= {f"{name}_{inner}": v for inner, v in nested.items()} if nested else {name: value}
    return flat
