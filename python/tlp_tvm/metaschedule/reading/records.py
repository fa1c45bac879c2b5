"""MetaSchedule's tuning records -> batches like Ansor's `RecordBatch`: what datasets are made of.

A record names what it computes by the line of a table of workloads, `database_workload.json`, which lies
beside the record file (as MetaSchedule's working folders have it) or in a folder above (as collections do).
"""

from __future__ import annotations

import functools
import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.ansor.reading.records import TaskKey
from tlp_tvm.errors import DatasetError, RecordError
from tlp_tvm.files import read_unpacked
from tlp_tvm.metaschedule.loading.targets import flags_of
from tlp_tvm.metaschedule.reading.workload_key import key_of_hash
from tlp_tvm.records.source import WORKLOADS, workload_lines
from tlp_tvm.tuning.history import History, history_of

if TYPE_CHECKING:
    from tlp_tvm.embedding import Embedding, EncodingReport
    from tlp_tvm.layout import FeatureLayout


RECORDS = "database_tuning_record.json"
"""Name of the record file in MetaSchedule's working folders."""

FAILED = 4
"""The error number of programs that failed: TVM's for any failure at run time, as the records do not say."""

_BLOCK_BYTES = 8 << 20

_LEVELS = 3
"""Folders above a record file in which its table of workloads may lie."""


@dataclass
class TraceBatch:
    """Tuning records in the order of their lines; arrays have one entry per record. See `RecordBatch`."""

    tasks: list[TaskKey]
    task_ids: NDArray[np.int32]
    latencies: NDArray[np.float64]
    """Median seconds; infinity for a program that failed."""
    errors: NDArray[np.int32]
    """0, or `FAILED`."""
    lengths: NDArray[np.int32]
    cost_values: NDArray[np.float64]
    cost_offsets: NDArray[np.int64]
    files: list[str]
    block: _core.TraceBlock = field(repr=False)
    skipped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.task_ids)

    @property
    def blocks(self) -> list[_core.TraceBlock]:
        """The programs themselves, natively."""
        return [self.block]

    @functools.cached_property
    def sequence_hashes(self) -> NDArray[np.uint64]:
        """Two programs of one task are the same exactly when these are."""
        return self.block.hashes()

    def encode(
        self,
        layout: FeatureLayout,
        *,
        threads: int = 0,
        report: EncodingReport | None = None,
    ) -> Embedding:
        """The programs as (N, L, E) float32; arguments as for `RecordBatch.encode`."""
        out = np.empty((len(self), layout.length, layout.width), np.float32)
        counts = self.block.encode(layout.encoder, out, threads)
        if report is not None:
            report.add(counts)
        return out

    def steps(self, i: int) -> list[list[Any]]:
        """Trace i as lists: the kind and fields of each primitive."""
        return self.block.steps(i)

    def step_texts(self, rows: NDArray[np.int64]) -> list[str]:
        """The traces of some records, as JSON."""
        return [self.block.json(int(i)) for i in rows]


def read_batch(files: Sequence[str | os.PathLike[str]]) -> TraceBatch:
    """All records of some files of one task, whose table of workloads is not looked at.

    Raises:
        RecordError: a line is no record.
        OSError: a file cannot be read.
    """
    text = b"".join(read_unpacked(file, RecordError) for file in files)
    name = ", ".join(str(file) for file in files)
    return _batch(name, _core.read_traces(text, name, 1, "record", False), None)


def read_database(file: Path) -> tuple[TraceBatch, bool]:
    """All records of a working folder, and whether the last line is cut off, as a kill leaves it.

    Raises:
        RecordError: a whole line is no record.
        DatasetError: the table of workloads is missing or damaged, or lacks one that a record names.
        OSError: the file cannot be read.
    """
    text = read_unpacked(file, RecordError)
    whole = text[: text.rfind(b"\n") + 1]
    keys = _workload_keys(_table_of(file)) if whole else []
    block = _core.read_traces(whole, str(file), 1, "record", False)
    return _batch(str(file), block, keys), len(whole) < len(text)


def read_history(file: Path, workload_keys: Sequence[str]) -> History:
    """What the records of a working folder say of a network's tasks.

    Args:
        file: of the records.
        workload_keys: of the tasks.

    Raises:
        RecordError: a line is no record.
        DatasetError: the table of workloads is missing or damaged.
    """
    return history_of(read_database(file)[0], workload_keys)[0]


def iter_batches(
    files: Sequence[str], *, errors: Literal["raise", "skip"] = "raise", threads: int = 0
) -> Iterator[TraceBatch]:
    """The records of files in batches, memory bounded whatever their size.

    Args:
        files: plain or .gz.
        errors: "raise" stops at the first bad line; "skip" passes over it and counts it in `skipped`.
        threads: 0 for all cores. The result does not depend on it.

    Raises:
        RecordError: a line is no record.
        DatasetError: the table of workloads is missing or damaged, or lacks one that a record names.
        OSError: a file cannot be read.
    """
    tables: dict[Path, list[str]] = {}
    with ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool:
        waiting: deque[tuple[str, Future[_core.TraceBlock]]] = deque()
        for file, line, text in _blocks(files):
            read = pool.submit(_core.read_traces, text, file, line, "record", errors == "skip")
            waiting.append((file, read))
            if len(waiting) > pool._max_workers:
                yield _finished(*waiting.popleft(), tables)
        while waiting:
            yield _finished(*waiting.popleft(), tables)


def _finished(file: str, block: Future[_core.TraceBlock], tables: dict[Path, list[str]]) -> TraceBatch:
    place = _table_of(Path(file))
    if place not in tables:
        tables[place] = _workload_keys(place)
    return _batch(file, block.result(), tables[place])


def _batch(file: str, block: _core.TraceBlock, keys: list[str] | None) -> TraceBatch:
    columns = block.columns()
    tasks: dict[tuple[int, str], int] = {}
    ids = np.empty(len(block), np.int32)
    named = zip(columns["workloads"].tolist(), columns["targets"], columns["lines"].tolist(), strict=True)
    for i, (workload, target, line) in enumerate(named):
        if keys is not None and not 0 <= workload < len(keys):
            raise DatasetError(
                f"{file}:{line}: expected one of the {len(keys)} workloads of {WORKLOADS}, found "
                f"number {workload}"
            )
        ids[i] = tasks.setdefault((workload, target), len(tasks))
    latencies = columns["latencies"]
    repeats = [len(costs) for costs in columns["costs"]]
    skipped: dict[str, int] = {}
    for _, reason, _ in block.skipped:
        skipped[reason] = skipped.get(reason, 0) + 1
    return TraceBatch(
        tasks=[
            TaskKey(str(workload) if keys is None else keys[workload], flags_of(target) if target else "")
            for workload, target in tasks
        ],
        task_ids=ids,
        latencies=latencies,
        errors=np.where(np.isfinite(latencies), 0, FAILED).astype(np.int32),
        lengths=block.lengths(),
        cost_values=np.array([cost for costs in columns["costs"] for cost in costs], np.float64),
        cost_offsets=np.concatenate([[0], np.cumsum(repeats, dtype=np.int64)]).astype(np.int64),
        files=[file],
        block=block,
        skipped=skipped,
    )


def _table_of(file: Path) -> Path:
    for folder in list(file.absolute().parents)[:_LEVELS]:
        if any((folder / f"{WORKLOADS}{end}").is_file() for end in ("", ".gz")):
            return folder / WORKLOADS
    raise DatasetError(
        f"{file}: expected {WORKLOADS} beside it or in a folder above, found none; records of MetaSchedule "
        "need their database's table of workloads"
    )


def _workload_keys(path: Path) -> list[str]:
    keys = []
    for number, line in enumerate(workload_lines(path), 1):
        try:
            keys.append(key_of_hash(int(json.loads(line)[0])))
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise DatasetError(
                f"{path}:{number}: expected a workload, [hash, module], found {error}"
            ) from error
    return keys


def _blocks(files: Sequence[str]) -> Iterator[tuple[str, int, bytes]]:
    """File, number of the first line, and whole lines."""
    for file in files:
        text, line = read_unpacked(file, RecordError), 1
        begin = 0
        while begin < len(text):
            end = text.find(b"\n", min(begin + _BLOCK_BYTES, len(text) - 1)) + 1 or len(text)
            block = text[begin:end]
            yield file, line, block
            line += block.count(b"\n")
            begin = end
