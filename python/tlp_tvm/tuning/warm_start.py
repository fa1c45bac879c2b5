"""Programs of the same tasks from earlier tunings: a start for the next one, outside its trials."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tlp_tvm.errors import TuningError
from tlp_tvm.files import write_whole
from tlp_tvm.record_batch import RecordBatch
from tlp_tvm.records.detect import read_records


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


def gather(
    sources: Sequence[Path], wanted: Collection[tuple[str, str]], same: Callable[[str], str], log: Path
) -> WarmStart:
    """Copy the records of some tasks out of earlier logs.

    Args:
        sources: TVM's record files, or folders of runs, whose log.json is read.
        wanted: workload key and target of the tasks; a record counts if it has those of one.
        same: a target of a record, spelled as those of the tasks are.
        log: where to write them; replaced, so that a resumed run does not depend on older files.

    Raises:
        TuningError: a source is missing.
        RecordError: a line is no record.
    """
    batches = [read_records(path) for path in sources_of(sources)]
    lines: dict[str, None] = {}  # the same record in two logs counts once
    total = 0
    for batch in batches:
        fits = [(task.workload_key, same(task.target)) in wanted for task in batch.tasks]
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
                f"`warm_start` {source}: expected a record log or the folder of a run, found none; "
                "choose another"
            )
    return files


def _rows(batch: RecordBatch, fits: Sequence[bool]) -> list[int]:
    return [i for i, task in enumerate(batch.task_ids) if fits[task]]
