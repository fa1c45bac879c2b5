"""The numbers of a run's epochs: JSON lines, and the same as CSV with times.

The JSON lines hold the numbers alone: two runs of the same recipe write the same bytes. `metrics.csv` adds
how long each epoch took.
"""

from __future__ import annotations

import csv
import io
import json
import math
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
            "programs' numbers are too large for the network; delete the folder, then set `precision` to "
            "float32, or leave out `faithful`, so that the network scales them"
        )


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a_b": 1}."""
    flat: dict[str, Any] = {}
    for name, value in entry.items():
        nested = value if isinstance(value, dict) else None
        flat |= {f"{name}_{inner}": v for inner, v in nested.items()} if nested else {name: value}
    return flat
