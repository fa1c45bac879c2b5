"""What earlier tunings measured of the same tasks: a start for the next one, but none of its trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.records import RecordBatch, read_records
from tlp_tvm.errors import TuningError
from tlp_tvm.files import write_whole


@dataclass(frozen=True)
class WarmStart:
    """Records of earlier logs.

    Attributes:
        log: a record file of those that belong to the tasks at hand.
        used: how many those are.
        passed_over: records of other tasks or targets.
    """

    log: Path
    used: int
    passed_over: int


def gather(sources: Sequence[Path], tasks: Sequence[Any], log: Path) -> WarmStart:
    """Copy the records of some tasks out of earlier logs.

    Args:
        sources: TVM's record files, or folders of runs, whose log.json is read.
        tasks: `auto_scheduler.SearchTask`s; a record counts if it has the workload key and the target of one.
        log: where to write them; replaced, so that a resumed run does not depend on older files.

    Raises:
        TuningError: a source is missing.
        RecordError: a line is no record.
    """
    batches = [read_records(path) for path in sources_of(sources)]
    target_of = load_tvm().target.Target
    wanted = {(str(task.workload_key), str(task.target)) for task in tasks}
    lines: dict[str, None] = {}  # the same record in two logs counts once
    total = 0
    for batch in batches:
        fits = [(task.workload_key, str(target_of(task.target))) in wanted for task in batch.tasks]
        lines.update(dict.fromkeys(batch.line(i) for i in _rows(batch, fits)))
        total += len(batch)
    write_whole(log, "".join(lines))
    return WarmStart(log, len(lines), total - len(lines))


def sources_of(sources: Sequence[Path]) -> list[Path]:
    """The record files that a user means.

    Args:
        sources: record files, or folders of runs.

    Raises:
        TuningError: one is missing.
    """
    files = [source / "log.json" if source.is_dir() else source for source in sources]
    for source, file in zip(sources, files, strict=True):
        if not file.is_file():
            raise TuningError(
                f"--warm-start {source}: expected a record log or the folder of a run, found none; "
                "choose another"
            )
    return files


def _rows(batch: RecordBatch, fits: Sequence[bool]) -> list[int]:
    return [i for i, task in enumerate(batch.task_ids) if fits[task]]
