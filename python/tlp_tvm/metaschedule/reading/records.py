"""MetaSchedule's tuning records -> batches: what datasets are made of.

A record names what it computes by the line of a table of workloads, `database_workload.json`, which lies
beside the record file (as MetaSchedule's working folders have it) or in a folder above (as collections do).
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.embedding import Embedding, EncodingReport
from tlp_tvm.errors import DatasetError, RecordError
from tlp_tvm.files import read_unpacked
from tlp_tvm.metaschedule.loading.targets import flags_of
from tlp_tvm.metaschedule.reading.workload_key import key_of_hash
from tlp_tvm.record_batch import SKIPPED_LINES_KEPT, RecordBatch, TaskKey, without_results
from tlp_tvm.records.record_files import parse_blocks
from tlp_tvm.records.source import WORKLOADS, workload_lines

RECORDS = "database_tuning_record.json"
"""Name of the record file in MetaSchedule's working folders."""

FAILED = 4
"""The error number of programs that failed: TVM's for any failure at run time, as the records do not say."""

_BLOCK_BYTES = 8 << 20

_LEVELS = 3
"""Folders above a record file in which its table of workloads may lie."""


_COLUMNS = {
    "task_ids": np.int32,
    "latencies": np.float64,
    "errors": np.int32,
    "timestamps": np.int64,
    "elapsed": np.float64,
    "lengths": np.int32,
    "cost_values": np.float64,
    "file_ids": np.int32,
    "line_numbers": np.int64,
}
"""Of a `RecordBatch`, an entry a record (of `cost_values`, a repeat)."""


class TracePrograms:
    """Programs of tuning records (`NativePrograms`)."""

    def __init__(self, blocks: list[_core.TraceBlock]) -> None:
        """Hold blocks that follow one another."""
        self.blocks = blocks

    def hashes(self) -> NDArray[np.uint64]:
        """(N,) two programs of one task are the same exactly when these are."""
        return np.concatenate([np.empty(0, np.uint64), *(block.hashes() for block in self.blocks)])

    def widths(self) -> NDArray[np.int32]:
        """(N,) values of each program's widest primitive."""
        return np.concatenate([np.empty(0, np.int32), *(block.widths() for block in self.blocks)])

    def encode(self, encoder: _core.Encoder, out: Embedding, threads: int) -> dict[str, Any]:
        """Write (N, L, E)."""
        report, begin = EncodingReport(), 0
        for block in self.blocks:
            report.add(block.encode(encoder, out[begin : begin + len(block)], threads))
            begin += len(block)
        return dataclasses.asdict(report)

    def encode_rows(
        self,
        encoder: _core.Encoder,
        chosen: NDArray[np.int64],
        offsets: NDArray[np.int64],
        rows: NDArray[np.float32],
        threads: int,
    ) -> dict[str, Any]:
        """Write (R, E)."""
        out = np.empty((sum(map(len, self.blocks)), encoder.length, encoder.width), np.float32)
        counts = self.encode(encoder, out, threads)
        for k, program in enumerate(chosen.tolist()):
            rows[offsets[k] : offsets[k + 1]] = out[program, : offsets[k + 1] - offsets[k]]
        return counts

    def steps(self, block: int, row: int) -> list[list[Any]]:
        """The trace as lists: the kind and fields of each primitive."""
        return self.blocks[block].steps(row)

    def text(self, block: int, row: int) -> str:
        """The trace as JSON that TVM's `Trace.apply_json_to_schedule` takes."""
        return self.blocks[block].json(row)

    def line(self, block: int, row: int) -> str:
        """No record stands for itself here."""
        raise ValueError(
            "record: expected one of Ansor, found one of MetaSchedule, which names its workload by a line of "
            f"{WORKLOADS}; take step_texts"
        )


def joined(batches: Sequence[RecordBatch]) -> RecordBatch:
    """Batches of this module as one."""
    if len(batches) == 1:
        return batches[0]
    places: dict[TaskKey, int] = {}
    parts: dict[str, Any] = {name: [np.empty(0, dtype)] for name, dtype in _COLUMNS.items()}
    files: list[str] = []
    skipped: dict[str, int] = {}
    offsets = [0]
    for batch in batches:
        of_batch = np.array([places.setdefault(task, len(places)) for task in batch.tasks], np.int32)
        if batch.files[0] not in files[-1:]:
            files.append(batch.files[0])
        for name in _COLUMNS:
            parts[name].append(getattr(batch, name))
        parts["task_ids"][-1] = of_batch[batch.task_ids]
        parts["file_ids"][-1] = np.full(len(batch), len(files) - 1, np.int32)
        offsets += (batch.cost_offsets[1:] + offsets[-1]).tolist()
        for reason, count in batch.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    blocks = [block for batch in batches for block in batch.programs.blocks]
    columns: dict[str, Any] = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    return RecordBatch(
        programs=TracePrograms(blocks),
        tasks=list(places),
        cost_offsets=np.array(offsets, np.int64),
        files=files,
        skipped=skipped,
        skipped_lines=[line for batch in batches for line in batch.skipped_lines][:SKIPPED_LINES_KEPT],
        **columns,
    )


def programs_of(text: bytes) -> RecordBatch:
    """Programs from the text of their traces, as datasets keep it; without task and result.

    Args:
        text: `TracePrograms.text` of each, a line a program.

    Raises:
        RecordError: a trace is damaged.
    """
    block = _core.read_traces(text, "<dataset>", 1, "trace", False)
    return without_results(TracePrograms([block]), block.lengths())


def read_batch(files: Sequence[str | os.PathLike[str]]) -> RecordBatch:
    """All records of some files of one task, whose table of workloads is not looked at.

    Raises:
        RecordError: a line is no record.
        OSError: a file cannot be read.
    """
    text = b"".join(read_unpacked(file, RecordError) for file in files)
    name = ", ".join(str(file) for file in files)
    return _batch(name, _core.read_traces(text, name, 1, "record", False), None)


def read_database(file: Path) -> tuple[RecordBatch, bool]:
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


def read_tuning_records(
    source: str | os.PathLike[str], *, errors: Literal["raise", "skip"] = "raise"
) -> RecordBatch:
    """Read the records of a database.

    Args:
        source: a working folder of MetaSchedule, or its file database_tuning_record.json.
        errors: "raise" stops at the first bad line; "skip" passes over it and counts it in `skipped`.

    Raises:
        RecordError: a line is no record, as `path:line: instruction: expected, found`.
        DatasetError: the table of workloads is missing or damaged.
        OSError: the file cannot be read.
    """
    path = Path(source)
    path = path / RECORDS if path.is_dir() else path
    block = _core.read_traces(path.read_bytes(), str(path), 1, "record", errors == "skip")
    return _batch(str(path), block, _workload_keys(_table_of(path)))


def iter_batches(
    files: Sequence[str], *, errors: Literal["raise", "skip"] = "raise", threads: int = 0
) -> Iterator[RecordBatch]:
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


def _finished(file: str, block: Future[_core.TraceBlock], tables: dict[Path, list[str]]) -> RecordBatch:
    place = _table_of(Path(file))
    if place not in tables:
        tables[place] = _workload_keys(place)
    return _batch(file, block.result(), tables[place])


def _batch(file: str, block: _core.TraceBlock, keys: list[str] | None) -> RecordBatch:
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
    return RecordBatch(
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
        file_ids=np.zeros(len(block), np.int32),
        line_numbers=columns["lines"],
        timestamps=np.zeros(len(block), np.int64),
        elapsed=np.zeros(len(block)),
        programs=TracePrograms([block]),
        skipped=skipped,
        skipped_lines=[
            f"{file}:{line}: {sentence}" for line, _, sentence in block.skipped[:SKIPPED_LINES_KEPT]
        ],
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
    """File, number of the first line, and whole lines; so much at a time as one batch has."""
    pieces: list[bytes] = []
    at, line = 0, 1
    for file, piece in parse_blocks(files, bytes, 1):
        if pieces and (file != at or sum(map(len, pieces)) >= _BLOCK_BYTES):
            text = b"".join(pieces)
            yield files[at], line, text
            line += text.count(b"\n")
            pieces = []
        if file != at:
            at, line = file, 1
        pieces.append(piece)
    if pieces:
        yield files[at], line, b"".join(pieces)
