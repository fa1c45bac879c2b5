"""MetaSchedule's databases: tuning records of a folder -> programs and results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core

if TYPE_CHECKING:
    from tlp_tvm.embedding import Embedding, EncodingReport
    from tlp_tvm.layout import FeatureLayout

RECORDS = "database_tuning_record.json"


@dataclass
class TraceRecords:
    """Tuning records in the order of their lines; arrays and lists have one entry per record."""

    workloads: NDArray[np.int64]
    """Line, from 0, of each record's program in database_workload.json."""
    latencies: NDArray[np.float64]
    """Mean seconds; infinity for a program that failed."""
    costs: list[list[float]]
    """Seconds of each run."""
    targets: list[str]
    """JSON of the TVM target, or empty."""
    arguments: list[str]
    """JSON of the arguments' shapes and types, or empty."""
    lengths: NDArray[np.int32]
    """Primitives of each trace, before any cut."""
    lines: NDArray[np.int64]
    """Line of each record, from 1."""
    skipped: list[tuple[int, str, str]]
    """Line, class and sentence of each line that was passed over."""
    block: _core.TraceBlock

    def __len__(self) -> int:
        return len(self.latencies)

    def steps(self, i: int) -> list[list[Any]]:
        """Trace i as lists: the kind and fields of each primitive."""
        return self.block.steps(i)

    def trace_json(self, i: int) -> str:
        """Trace i as JSON that TVM's `Trace.apply_json_to_schedule` takes."""
        return self.block.json(i)

    def encode(
        self, layout: FeatureLayout, *, threads: int = 0, report: EncodingReport | None = None
    ) -> Embedding:
        """Embed all programs: (N, L, E) float32."""
        out = np.empty((len(self), layout.length, layout.width), np.float32)
        counts = self.block.encode(layout.encoder, out, threads)
        if report is not None:
            report.add(counts)
        return out


def read_tuning_records(
    source: str | os.PathLike[str], *, errors: Literal["raise", "skip"] = "raise"
) -> TraceRecords:
    """Read the records of a database.

    Args:
        source: a working folder of MetaSchedule, or its file database_tuning_record.json.
        errors: "raise" stops at the first bad line; "skip" passes over it and lists it in `skipped`.

    Raises:
        RecordError: a line is no record, as `path:line: instruction: expected, found`.
        OSError: the file cannot be read.
    """
    path = Path(source)
    path = path / RECORDS if path.is_dir() else path
    block = _core.read_traces(path.read_bytes(), str(path), 1, "record", errors == "skip")
    columns = block.columns()
    return TraceRecords(
        workloads=columns["workloads"],
        latencies=columns["latencies"],
        costs=columns["costs"],
        targets=columns["targets"],
        arguments=columns["arguments"],
        lengths=block.lengths(),
        lines=columns["lines"],
        skipped=block.skipped,
        block=block,
    )
