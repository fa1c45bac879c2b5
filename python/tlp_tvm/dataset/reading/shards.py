"""Shards: Arrow IPC files of programs and their measurements, layout-free and memory-mappable.

One row a program; a task's programs lie together, in the order in which they were first seen:

    task            int32         place in the manifest's task table
    sequence_hash   uint64        the program's identity within its task
    steps           large_string  its steps, as a record of its framework has them: Ansor's
                                 `[["SP", 7, 0, 1, [1, 1], 1], ...]`, or the JSON of a trace
    measurements    list of       in the order of the sources
      platform      uint16        place in the manifest's platforms
      latency       float64       median of the costs in seconds; infinity where measuring failed
      error         int32         TVM's MeasureErrorNo; 0 is fine
      costs         list<float64> the repeats, in seconds

Steps are text because the native reader takes it at a gigabyte a second, and any later layout can be applied.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tlp_tvm.errors import DatasetError
from tlp_tvm.framework import DEFAULT, framework_named
from tlp_tvm.record_batch import RecordBatch

MEASUREMENT = pa.struct(
    [
        ("platform", pa.uint16()),
        ("latency", pa.float64()),
        ("error", pa.int32()),
        ("costs", pa.list_(pa.float64())),
    ]
)
SCHEMA = pa.schema(
    [
        ("task", pa.int32()),
        ("sequence_hash", pa.uint64()),
        ("steps", pa.large_string()),
        ("measurements", pa.large_list(MEASUREMENT)),
    ]
)

COMPRESSION = "lz4"
"""A tenth of the size, and unpacked faster than the steps are parsed (docs/benchmarks.md)."""

ROWS_A_BATCH = 16384

_DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What Arrow raises where a file is not what it should be."""


@dataclass(frozen=True)
class ProgramBatch:
    """N programs with their M measurements; programs of a task follow one another."""

    tasks: NDArray[np.int32]
    """(N,) places in the task table."""
    sequence_hashes: NDArray[np.uint64]
    """(N,) identity of each program within its task."""
    steps: pa.LargeStringArray
    programs: NDArray[np.int64]
    """(M,) row of the program that was measured, ascending."""
    platforms: NDArray[np.int64]
    """(M,) places in the manifest's platforms."""
    latencies: NDArray[np.float64]
    """(M,) seconds; infinity where measuring failed."""
    errors: NDArray[np.int32]
    """(M,)"""
    cost_values: NDArray[np.float64]
    """All repeats of all measurements, in seconds."""
    cost_offsets: NDArray[np.int64]
    """(M + 1,): those of measurement i are cost_values[cost_offsets[i]:cost_offsets[i + 1]]."""
    framework: str = DEFAULT
    """Whose programs."""

    def __len__(self) -> int:
        return len(self.tasks)

    def records(self, *, threads: int = 0) -> RecordBatch:
        """The programs, read natively: one record each, without task and result.

        Raises:
            RecordError: the steps of a program are damaged.
        """
        return programs_of(self.framework, self.steps, threads=threads)


def programs_of(framework: str, steps: pa.LargeStringArray, *, threads: int = 0) -> RecordBatch:
    """Programs of shards, read natively: one record each, without task and result.

    Args:
        framework: whose programs.
        steps: of each program, as its row has them.
        threads: native threads; 0 for all cores.

    Raises:
        RecordError: the steps of a program are damaged.
    """
    nothing, newline = (pa.scalar(text, pa.large_string()) for text in ("", "\n"))
    lines = pc.binary_join_element_wise(steps, nothing, newline)
    # An empty array has no buffer; a sliced one would start elsewhere, but a joined one is new.
    return framework_named(framework).programs(bytes(lines.buffers()[2] or b""), threads)


def write_shard(path: Path, table: pa.Table) -> None:
    """Write a shard; `table` has the columns of `SCHEMA`.

    Raises:
        OSError: e.g. the disk is full.
    """
    options = pa.ipc.IpcWriteOptions(compression=COMPRESSION)
    with path.open("wb") as file:
        with pa.ipc.new_file(file, SCHEMA, options=options) as writer:
            writer.write_table(table, ROWS_A_BATCH)
        file.flush()
        os.fsync(file.fileno())


class ShardReader:
    """A memory-mapped shard."""

    def __init__(self, path: Path, framework: str = DEFAULT) -> None:
        """Map the file and read its footer.

        Args:
            path: of the file.
            framework: whose programs it has.

        Raises:
            DatasetError: it is no shard, or cut short.
        """
        self.path = path
        self.framework = framework
        try:
            self._file = pa.ipc.open_file(pa.memory_map(str(path)))
            names = self._file.schema.names
        except _DAMAGE as error:
            raise _damaged(path, error) from error
        if self._file.schema != SCHEMA:
            raise DatasetError(
                f"{path}: expected the columns of a shard, found {names}; build the dataset again"
            )

    def batches(self) -> Iterator[ProgramBatch]:
        """Its programs, batch by batch.

        Raises:
            DatasetError: it is damaged.
        """
        for i in range(len(self)):
            yield _program_batch(self._batch(i), self.framework)

    def __len__(self) -> int:
        """How many batches it has."""
        return int(self._file.num_record_batches)

    def steps(self, i: int) -> pa.LargeStringArray:
        """The steps of the programs of one batch.

        Raises:
            DatasetError: it is damaged.
        """
        return self._batch(i).column("steps")

    def _batch(self, i: int) -> pa.RecordBatch:
        try:
            batch = self._file.get_batch(i)
            batch.validate(full=True)
        except _DAMAGE as error:
            raise _damaged(self.path, error) from error
        return batch


def _program_batch(batch: pa.RecordBatch, framework: str) -> ProgramBatch:
    lists = batch.column("measurements")
    measured = lists.flatten()
    costs = measured.field("costs")
    offsets = costs.offsets.to_numpy().astype(np.int64)
    per_program = np.diff(lists.offsets.to_numpy())

    def column(array: pa.Array) -> NDArray[Any]:
        values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        return values

    return ProgramBatch(
        tasks=column(batch.column("task")),
        sequence_hashes=column(batch.column("sequence_hash")),
        steps=batch.column("steps"),
        programs=np.repeat(np.arange(len(batch)), per_program),
        platforms=column(measured.field("platform")).astype(np.int64),
        latencies=column(measured.field("latency")),
        errors=column(measured.field("error")),
        cost_values=column(costs.flatten()),
        cost_offsets=offsets - offsets[0],
        framework=framework,
    )


def _damaged(path: Path, error: Exception) -> DatasetError:
    return DatasetError(f"{path}: expected a whole shard, found {error}; build the dataset again")
