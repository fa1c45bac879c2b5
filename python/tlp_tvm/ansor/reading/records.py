"""Measure records: logs of any size -> batches of programs, tasks and results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.embedding import Embedding
from tlp_tvm.files import fresh_file
from tlp_tvm.record_batch import SKIPPED_LINES_KEPT, RecordBatch, TaskKey, without_results
from tlp_tvm.records.record_files import parse_blocks, record_files

_BEFORE_STEPS, _AFTER_STEPS = ", [[], [", ']], "r": '
"""What stands around the steps of a record."""

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class RecordPrograms:
    """Programs of measure records (`NativePrograms`)."""

    def __init__(self, blocks: list[_core.RecordBlock]) -> None:
        """Hold blocks that follow one another."""
        self.blocks = blocks

    def hashes(self) -> NDArray[np.uint64]:
        """(N,) two programs of one task are the same exactly when these are."""
        return _core.hashes_of(self.blocks, 0)

    def widths(self) -> NDArray[np.int32]:
        """(N,) values of each program's widest step."""
        return np.concatenate([np.empty(0, np.int32), *(block.widths() for block in self.blocks)])

    def encode(self, encoder: _core.Encoder, out: Embedding, threads: int) -> dict[str, Any]:
        """Write (N, L, E)."""
        return _core.encode_blocks(self.blocks, encoder, out, threads)

    def encode_rows(
        self,
        encoder: _core.Encoder,
        chosen: NDArray[np.int64],
        offsets: NDArray[np.int64],
        rows: NDArray[np.float32],
        threads: int,
    ) -> dict[str, Any]:
        """Write (R, E)."""
        return _core.encode_rows(self.blocks, encoder, chosen, offsets, rows, threads)

    def steps(self, block: int, row: int) -> list[list[Any]]:
        """The steps, in record form."""
        return self.blocks[block].steps(row)

    def text(self, block: int, row: int) -> str:
        """The steps as text: `[["SP", 7, 0, 1, [1, 1], 1], ...]`."""
        return _steps_text(self.blocks[block].line(row))

    def line(self, block: int, row: int) -> str:
        """The record as TVM writes it, with its newline."""
        return self.blocks[block].line(row)


def _steps_text(line: str) -> str:
    """The steps of a record that `RecordBlock.line` wrote."""
    begin = line.rindex(_BEFORE_STEPS) + len(_BEFORE_STEPS) - 1
    return line[begin : line.rindex(_AFTER_STEPS)]


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
            file.writelines(batch.line(i) for i in range(len(batch)))
            count += len(batch)
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


def programs_of(text: bytes, threads: int = 0) -> RecordBatch:
    """Programs from the text of their steps, as datasets keep it; without task and result.

    Args:
        text: `RecordPrograms.text` of each, a line a program.
        threads: native threads; 0 for all cores.

    Raises:
        RecordError: the steps of a program are damaged.
    """
    block = _core.read_steps(text, "<dataset>", threads)
    return without_results(RecordPrograms([block]), block.lengths())


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
            programs=RecordPrograms(self.blocks),
        )
