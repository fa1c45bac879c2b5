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
from tlp_tvm.files import fresh_file
from tlp_tvm.records.record_files import parse_blocks, record_files

if TYPE_CHECKING:
    from tlp_tvm.embedding import Embedding, EncodingReport
    from tlp_tvm.layout import FeatureLayout

_BEFORE_STEPS, _AFTER_STEPS = ", [[], [", ']], "r": '
"""What stands around the steps of a record."""

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
    """Measure records in the order of their files and lines; arrays have one entry per record."""

    tasks: list[TaskKey]
    task_ids: NDArray[np.int32]
    """Indices into `tasks`."""
    latencies: NDArray[np.float64]
    """Median cost in seconds; infinity for a failed measurement."""
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
        return _core.hashes_of(self.blocks, 0)

    def encode(
        self,
        layout: FeatureLayout,
        *,
        threads: int = 0,
        out: Embedding | None = None,
        report: EncodingReport | None = None,
    ) -> Embedding:
        """The programs as (N, L, E) float32.

        Args:
            layout: what to write where.
            threads: native threads; 0 for all cores.
            out: (M, L, E) float32 with M >= N to write to: the first N are returned. Batch after batch
                into one array spares the system making new memory each time.
            report: receives counts of what the layout could not encode.
        """
        if out is None:
            out = np.empty((len(self), layout.length, layout.width), np.float32)
        out = out[: len(self)]
        counts = _core.encode_blocks(self.blocks, layout.encoder, out, threads)
        if report is not None:
            report.add(counts)
        return out

    def encode_rows(
        self,
        layout: FeatureLayout,
        records: NDArray[np.int64] | None = None,
        *,
        threads: int = 0,
        report: EncodingReport | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The programs without the rows past their end.

        Args:
            layout: what to write where.
            records: indices of the n records to take, in any order; all when None.
            threads: native threads; 0 for all cores.
            report: receives counts of what the layout could not encode.

        Returns:
            (R, E) float32, and (n + 1,) offsets: the rows of the k-th chosen record are
            rows[offsets[k]:offsets[k + 1]], at most L.
        """
        chosen = np.arange(len(self)) if records is None else np.ascontiguousarray(records, np.int64)
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(np.minimum(self.lengths[chosen], layout.length), out=offsets[1:])
        rows = np.empty((offsets[-1], layout.width), np.float32)
        counts = _core.encode_rows(self.blocks, layout.encoder, chosen, offsets, rows, threads)
        if report is not None:
            report.add(counts)
        return rows, offsets

    def steps(self, i: int) -> list[list[Any]]:
        """The steps of record i, in record form."""
        block, row = self._at(i)
        return block.steps(row)

    def step_texts(self, rows: NDArray[np.int64]) -> list[str]:
        """The steps of some records, as text: `[["SP", 7, 0, 1, [1, 1], 1], ...]`."""
        ends = np.cumsum([len(block) for block in self.blocks])
        at = np.searchsorted(ends, rows, side="right")
        place = rows - np.concatenate([[0], ends])[at]
        lines = (self.blocks[b].line(i) for b, i in zip(at.tolist(), place.tolist(), strict=True))
        return [_steps_text(line) for line in lines]

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


def _steps_text(line: str) -> str:
    """The steps of a record that `RecordBlock.line` wrote."""
    begin = line.rindex(_BEFORE_STEPS) + len(_BEFORE_STEPS) - 1
    return line[begin : line.rindex(_AFTER_STEPS)]


SKIPPED_LINES_KEPT = 20
"""How many sentences about skipped lines a batch keeps."""


def read_records(
    source: Source, *, errors: Literal["raise", "skip"] = "raise", threads: int = 0
) -> RecordBatch:
    """Read every record of a log, a list of logs, or a folder (*.json, *.log, also .gz; sorted).

    Args:
        source: where the records are.
        errors: "raise" stops at the first bad line; "skip" passes over it and counts it in `skipped`.
        threads: native threads; 0 for all cores. The result does not depend on it.

    Raises:
        RecordError: a line is no record, or a .gz is damaged.
        OSError: a file cannot be read.
    """
    collector = _Collector()
    for file, block in _read_blocks(source, errors, threads):
        collector.add(file, block)
    return collector.batch(threads)


def iter_records(
    source: Source,
    *,
    batch_size: int = 16384,
    errors: Literal["raise", "skip"] = "raise",
    threads: int = 0,
) -> Iterator[RecordBatch]:
    """The same in batches, memory bounded whatever the size of the input.

    Args:
        source: where the records are.
        batch_size: records of a batch, at most; a block of 1 MB of text that has more is a batch of its own.
        errors: as for `read_records`.
        threads: as for `read_records`.
    """
    collector = _Collector()
    for file, block in _read_blocks(source, errors, threads):
        if collector.size and collector.size + len(block) > batch_size:
            yield collector.batch(threads)
            collector = _Collector()
        collector.add(file, block)
    if collector.blocks:
        yield collector.batch(threads)


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
        found = f"{len(block)} of them; read_records reads logs" if len(block) else "a blank line"
        raise _core.RecordError(f"<record>:1: expected one record, found {found}")
    return block.steps(0)


def _read_blocks(source: Source, errors: str, threads: int) -> Iterator[tuple[str, _core.RecordBlock]]:
    if errors not in ("raise", "skip"):
        raise ValueError(f'errors: expected "raise" or "skip", found {errors!r}')

    def parse(text: memoryview) -> _core.RecordBlock:
        return _core.parse_block(text, errors == "skip", 1)

    files = record_files(source)
    file_before, line = 0, 1
    for file, block in parse_blocks(files, parse, threads):
        if file != file_before:
            file_before, line = file, 1
        block.place(files[file], line)
        line += block.lines
        yield files[file], block


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

    def batch(self, threads: int) -> RecordBatch:
        skipped: dict[str, int] = {}
        sentences: list[str] = []
        for block in self.blocks:
            for _, reason, sentence in block.skipped:
                skipped[reason] = skipped.get(reason, 0) + 1
                if len(sentences) < SKIPPED_LINES_KEPT:
                    sentences.append(sentence)
        columns = _core.columns_of(self.blocks, threads)
        return RecordBatch(
            tasks=[TaskKey(*task) for task in columns.pop("tasks")],
            **columns,
            files=self.files,
            file_ids=np.repeat(
                np.array(self.file_ids, np.int32), np.array([len(b) for b in self.blocks], np.int64)
            ),
            skipped=skipped,
            skipped_lines=sentences,
            blocks=self.blocks,
        )


__all__ = ["RecordBatch", "TaskKey", "iter_records", "read_records", "steps_of_record", "write_records"]
