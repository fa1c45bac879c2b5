"""Measured programs, read natively: one class, whatever framework's records they come from."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.embedding import Embedding, EncodingReport
from tlp_tvm.layout import FeatureLayout

SKIPPED_LINES_KEPT = 20
"""How many sentences about skipped lines a batch keeps."""


class NativePrograms(Protocol):
    """The programs of a batch in the native core; a framework says how its blocks are read."""

    @property
    def blocks(self) -> Sequence[Any]:
        """Native blocks that follow one another; the length of each is how many programs it has."""
        ...

    def hashes(self) -> NDArray[np.uint64]:
        """(N,) an identity of each program within its task."""
        ...

    def widths(self) -> NDArray[np.int32]:
        """(N,) values of each program's widest primitive."""
        ...

    def encode(self, encoder: _core.Encoder, out: Embedding, threads: int) -> dict[str, Any]:
        """Write (N, L, E), and say what the layout could not encode."""
        ...

    def encode_rows(
        self,
        encoder: _core.Encoder,
        chosen: NDArray[np.int64],
        offsets: NDArray[np.int64],
        rows: NDArray[np.float32],
        threads: int,
    ) -> dict[str, Any]:
        """Write (R, E): the rows of chosen programs, one program after the other."""
        ...

    def steps(self, block: int, row: int) -> list[list[Any]]:
        """The primitives of a program of a block."""
        ...

    def text(self, block: int, row: int) -> str:
        """The same as text."""
        ...

    def line(self, block: int, row: int) -> str:
        """A program's record as TVM writes it, with its newline."""
        ...


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
    """Measured programs in the order of their files and lines; arrays have one entry a record."""

    programs: NativePrograms = field(repr=False)
    tasks: list[TaskKey]
    task_ids: NDArray[np.int32]
    """Indices into `tasks`."""
    latencies: NDArray[np.float64]
    """Median cost in seconds; infinity for a failed measurement."""
    errors: NDArray[np.int32]
    """TVM's MeasureErrorNo; 0 is fine. Records that do not say why a program failed have 4."""
    timestamps: NDArray[np.int64]
    """Seconds since 1970; 0 where records do not say."""
    elapsed: NDArray[np.float64]
    """Seconds that building and measuring took; 0 where records do not say."""
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

    def __len__(self) -> int:
        return len(self.task_ids)

    @functools.cached_property
    def sequence_hashes(self) -> NDArray[np.uint64]:
        """Two programs of one task are the same exactly when these are."""
        return self.programs.hashes()

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
        counts = self.programs.encode(layout.encoder, out, threads)
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
        counts = self.programs.encode_rows(layout.encoder, chosen, offsets, rows, threads)
        if report is not None:
            report.add(counts)
        return rows, offsets

    def steps(self, i: int) -> list[list[Any]]:
        """The primitives of record i, as the framework's records have them."""
        return self.programs.steps(*self._at(i))

    def step_texts(self, rows: NDArray[np.int64]) -> list[str]:
        """The primitives of some records as text, which is what a dataset keeps of them."""
        ends = np.cumsum([len(block) for block in self.programs.blocks])
        at = np.searchsorted(ends, rows, side="right")
        place = rows - np.concatenate([[0], ends])[at]
        return [self.programs.text(b, i) for b, i in zip(at.tolist(), place.tolist(), strict=True)]

    def line(self, i: int) -> str:
        """Record i as TVM writes it, with its newline.

        Raises:
            ValueError: it is MetaSchedule's, whose records name what they compute by another file's line.
        """
        return self.programs.line(*self._at(i))

    def _at(self, i: int) -> tuple[int, int]:
        if not 0 <= i < len(self):
            raise IndexError(f"record {i} of a batch of {len(self)}")
        for number, block in enumerate(self.programs.blocks):
            if i < len(block):
                return number, i
            i -= len(block)
        raise AssertionError("blocks hold every record")


def without_results(programs: NativePrograms, lengths: NDArray[np.int32]) -> RecordBatch:
    """A batch of programs of which neither task nor result is known."""
    count = len(lengths)
    nothing = np.zeros(count)
    return RecordBatch(
        programs=programs,
        tasks=[],
        task_ids=np.zeros(count, np.int32),
        latencies=nothing,
        errors=np.zeros(count, np.int32),
        timestamps=np.zeros(count, np.int64),
        elapsed=nothing,
        lengths=lengths,
        cost_values=nothing,
        cost_offsets=np.arange(count + 1, dtype=np.int64),
        files=["<dataset>"],
        file_ids=np.zeros(count, np.int32),
        line_numbers=np.arange(1, count + 1, dtype=np.int64),
    )
