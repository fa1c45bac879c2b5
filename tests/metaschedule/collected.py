"""A small collection of MetaSchedule's programs, and settings that are quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tlp_tvm.collection import CollectSettings
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings

NETWORK, TASKS = "mlp", 4
TARGET = "llvm -num-cores=1"
QUICK = MeasureSettings(threads=0, timing=Timing(repeat=2, min_repeat_ms=1), build_timeout_s=120)
"""The time is for machines that do much else."""


def settings(out: Path, **changes: Any) -> CollectSettings:
    """A collection of a network with four tasks."""
    given: dict[str, Any] = {
        "platform": "here",
        "programs": 4,
        "batch": 8,
        "evolved": 0.0,
        "measure": QUICK,
        "framework": "metaschedule",
        **changes,
    }
    return CollectSettings((NETWORK,), out, TARGET, **given)


def lines_of(folder: Path, platform: str = "here") -> list[str]:
    """The records of a platform."""
    files = sorted((folder / platform).rglob("*.json"))
    return [line for file in files for line in file.read_text().splitlines(keepends=True)]


def hashes_of(folder: Path, platform: str = "here") -> list[tuple[str, int]]:
    """Task and identity of each program of a platform."""
    from tlp_tvm.metaschedule.reading.records import iter_batches

    files = [str(file) for file in sorted((folder / platform).rglob("*.json"))]
    return [
        (batch.tasks[task].workload_key, number)
        for batch in iter_batches(files)
        for task, number in zip(batch.task_ids.tolist(), batch.sequence_hashes.tolist(), strict=True)
    ]
