"""Measure records: logs of any size -> batches of programs, tasks and results."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.ansor.record_files import blocks_of, record_files
from tlp_tvm.files import fresh_file

if TYPE_CHECKING:
    from tlp_tvm.features import Embedding, EncodingReport
    from tlp_tvm.layout import FeatureLayout

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class TaskKey:
    """What a record says of its task. Members that old versions of the format lack are empty."""

    workload_key: str
    target: str
    hardware: tuple[int, ...] | None = None
    """HardwareParams in the order of the record: cores, vector bytes, cache line bytes, shared memory,
    local memory and threads per block, vthread extent, warp size."""
    target_host: str = ""
    layout_rewrite: int = 0
    input_names: tuple[str, ...] = ()
    members: int = 6
    """How many of these the record has: 2 (v0.2) to 6 (v0.6)."""


@dataclass
class RecordBatch:
    """Measure records in the order of their files and lines; arrays have one entry a record."""

    tasks: list[TaskKey]
    task_ids: NDArray[np.int32]
    """Indices into `tasks`."""
    latencies: NDArray[np.float64]
    """Mean cost in seconds; infinity for a failed measurement."""
    errors: NDArray[np.int32]
    """TVM's MeasureErrorNo; 0 is fine."""
    timestamps: NDArray[np.int64]
    """Seconds since 1970."""
    elapsed: NDArray[np.float64]
    """Seconds that building and measuring took."""
    lengths: NDArray[np.int32]
    """Primitives of each program, before any cut."""
    cost_values: NDArray[np.float64]
    """All repeats of all records, in seconds."""
    cost_offsets: NDArray[np.int64]
    """(N + 1,): the repeats of record i are cost_values[cost_offsets[i]:cost_offsets[i + 1]]."""
    files: list[str]
    file_ids: NDArray[np.int32]
    line_numbers: NDArray[np.int64]
    skipped: dict[str, int] = field(default_factory=dict)
    """Reason -> lines passed over, with errors="skip"."""
    skipped_lines: list[str] = field(default_factory=list)
    """The first sentences of those, each with file and line."""
    features: Embedding | None = None
    """(N, L, E), from `extract_records`."""
    report: EncodingReport | None = None
    blocks: list[_core.RecordBlock] = field(default_factory=list, repr=False)
    """The programs themselves, natively."""

    def __len__(self) -> int:
        return len(self.task_ids)

    @functools.cached_property
    def sequence_hashes(self) -> NDArray[np.uint64]:
        """Two programs of one task are the same exactly when these are."""
        return _join([block.hashes() for block in self.blocks], np.uint64)

    def encode(
        self, layout: FeatureLayout, *, threads: int = 0, report: EncodingReport | None = None
    ) -> Embedding:
        """The programs as (N, L, E) float32."""
        out = np.empty((len(self), layout.length, layout.width), np.float32)
        begin = 0
        for block in self.blocks:
            counts = block.encode(layout.encoder, out[begin : begin + len(block)], threads)
            begin += len(block)
            if report is not None:
                report.add(counts)
        return out

    def steps(self, i: int) -> list[list[Any]]:
        """The steps of record i, in record form."""
        block, row = self._at(i)
        return block.steps(row)

    def line(self, i: int) -> str:
        """Record i as TVM writes it, with its newline."""
        block, row = self._at(i)
        return block.line(row)

    def _at(self, i: int) -> tuple[_core.RecordBlock, int]:
        if not 0 <= i < len(self):
            raise IndexError(f"record {i} of a batch of {len(self)}")
        for block in self.blocks:
            if i < len(block):
                return block, i
            i -= len(block)
        raise AssertionError("blocks hold every record")


SKIPPED_LINES_KEPT = 20
"""How many sentences about skipped lines a batch keeps."""


def read_records(
    source: Source, *, errors: Literal["raise", "skip"] = "raise", threads: int = 0
) -> RecordBatch:
    """Read every record of a log, a list of logs, or a folder (*.json, *.log, also .gz; sorted).

    Args:
        source: where the records are.
        errors: "raise" stops at the first bad line; "skip" passes over it and counts it in `skipped`.
        threads: native threads; 0 for every core. The result does not depend on it.

    Raises:
        RecordError: a line is no record, or a .gz is damaged.
        OSError: a file cannot be read.
    """
    collector = _Collector()
    for file, block in _read_blocks(source, errors, threads):
        collector.add(file, block)
    return collector.batch()


def iter_records(
    source: Source,
    *,
    batch_size: int = 16384,
    errors: Literal["raise", "skip"] = "raise",
    threads: int = 0,
) -> Iterator[RecordBatch]:
    """The same in batches of about `batch_size` records, memory bounded whatever the size of the input."""
    collector = _Collector()
    for file, block in _read_blocks(source, errors, threads):
        collector.add(file, block)
        if collector.size >= batch_size:
            yield collector.batch()
            collector = _Collector()
    if collector.blocks:
        yield collector.batch()


def write_records(path: str | os.PathLike[str], batches: RecordBatch | Iterator[RecordBatch]) -> int:
    """Write records as a log that TVM reads, to a new name first.

    Returns:
        How many were written.
    """
    count = 0
    with fresh_file(path) as fresh, fresh.open("w", encoding="utf-8", newline="\n") as file:
        for batch in [batches] if isinstance(batches, RecordBatch) else batches:
            for block in batch.blocks:
                file.writelines(block.line(i) for i in range(len(block)))
                count += len(block)
    return count


def steps_of_record(line: str) -> list[list[Any]]:
    """The steps of one record line, read natively.

    Raises:
        RecordError: the line is no record.
    """
    block = _core.read_block(line.rstrip("\n").encode() + b"\n", "<record>", 1, False, 1)
    if len(block) != 1:
        raise _core.RecordError("<record>:1: expected one record, found a blank line")
    return block.steps(0)


def _read_blocks(source: Source, errors: str, threads: int) -> Iterator[tuple[str, _core.RecordBlock]]:
    if errors not in ("raise", "skip"):
        raise ValueError(f'errors: expected "raise" or "skip", found {errors!r}')
    for file in record_files(source):
        line = 1
        for text in blocks_of(file):
            block = _core.read_block(text, file, line, errors == "skip", threads)
            line += block.lines
            yield file, block


class _Collector:
    """Gathers native blocks into one batch."""

    def __init__(self) -> None:
        self.blocks: list[_core.RecordBlock] = []
        self.files: list[str] = []
        self.file_ids: list[int] = []
        self.size = 0

    def add(self, file: str, block: _core.RecordBlock) -> None:
        if not self.files or self.files[-1] != file:
            self.files.append(file)
        self.blocks.append(block)
        self.file_ids.append(len(self.files) - 1)
        self.size += len(block)

    def batch(self) -> RecordBatch:
        blocks = self.blocks
        tasks: dict[TaskKey, int] = {}
        task_ids = []
        skipped: dict[str, int] = {}
        sentences: list[str] = []
        for block in blocks:
            ids = [tasks.setdefault(TaskKey(*task), len(tasks)) for task in block.tasks]
            task_ids.append(np.array(ids, np.int32)[block.task_ids()])
            for _, reason, sentence in block.skipped:
                skipped[reason] = skipped.get(reason, 0) + 1
                if len(sentences) < SKIPPED_LINES_KEPT:
                    sentences.append(sentence)
        counts = _join([block.cost_counts() for block in blocks], np.int64)
        return RecordBatch(
            tasks=list(tasks),
            task_ids=_join(task_ids, np.int32),
            latencies=_join([block.latencies() for block in blocks], np.float64),
            errors=_join([block.errors() for block in blocks], np.int32),
            timestamps=_join([block.timestamps() for block in blocks], np.int64),
            elapsed=_join([block.elapsed() for block in blocks], np.float64),
            lengths=_join([block.lengths() for block in blocks], np.int32),
            cost_values=_join([block.costs() for block in blocks], np.float64),
            cost_offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
            files=self.files,
            file_ids=np.repeat(
                np.array(self.file_ids, np.int32), np.array([len(b) for b in blocks], np.int64)
            ),
            line_numbers=_join([block.line_numbers() for block in blocks], np.int64),
            skipped=skipped,
            skipped_lines=sentences,
            blocks=blocks,
        )


def _join(parts: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


__all__ = ["RecordBatch", "TaskKey", "iter_records", "read_records", "steps_of_record", "write_records"]
