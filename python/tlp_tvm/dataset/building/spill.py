"""The first pass of a build: records of any order -> files of unlike tasks, each program once.

A task's records may lie in many files, platform by platform. So every record goes to the partition of its
task, on disk, and the second pass holds one partition at a time in memory. What stays in memory here is the
identity of each program seen (12 bytes).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tlp_tvm.dataset.reading.shards import COMPRESSION, SCHEMA
from tlp_tvm.record_batch import RecordBatch

_PROGRAM = pa.schema(
    [
        ("task", pa.int32()),
        ("index", pa.int32()),
        ("sequence_hash", pa.uint64()),
        ("steps", pa.large_string()),
    ]
)
_MEASURED = pa.schema(
    [
        ("task", pa.int32()),
        ("index", pa.int32()),
        ("platform", pa.uint16()),
        ("latency", pa.float64()),
        ("error", pa.int32()),
        ("costs", pa.list_(pa.float64())),
    ]
)


class ProgramNumbers:
    """Numbers the programs of each task in the order in which they are first seen."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[NDArray[np.uint64], NDArray[np.int32]]] = {}  # hashes ascending

    def number(self, task: int, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Number programs of a task.

        Returns:
            (n,) the number of each, and (k,) the places of those that were never seen before, in order.
        """
        nothing = np.empty(0, np.uint64), np.empty(0, np.int32)
        known, numbers = self._known.get(task, nothing)
        unlike, first, back = np.unique(hashes, return_index=True, return_inverse=True)
        at = np.searchsorted(known, unlike)
        seen = at < len(known)
        seen[seen] = known[at[seen]] == unlike[seen]
        out = np.empty(len(unlike), np.int32)
        out[seen] = numbers[at[seen]]
        new = np.flatnonzero(~seen)
        new = new[np.argsort(first[new])]
        if len(new):
            out[new] = np.arange(len(known), len(known) + len(new), dtype=np.int32)
            known, numbers = np.concatenate([known, unlike[new]]), np.concatenate([numbers, out[new]])
            order = np.argsort(known)
            self._known[task] = known[order], numbers[order]
        return out[back], first[new]

    def count(self, task: int) -> int:
        """Programs of a task."""
        return len(self._known[task][0]) if task in self._known else 0


class Spill:
    """Partitions of tasks in a folder: written once, then read one after another."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.folder = folder
        self.partitions = partitions
        self.numbers = ProgramNumbers()
        self._writers: dict[tuple[str, int], pa.RecordBatchStreamWriter] = {}
        folder.mkdir()

    def add(self, batch: RecordBatch, tasks: NDArray[np.int64], platforms: NDArray[np.int64]) -> None:
        """Write a batch of records.

        Args:
            batch: the records.
            tasks: (n,) the task of each.
            platforms: (n,) the platform of each.

        Raises:
            OSError: e.g. the disk is full.
        """
        order = np.lexsort((tasks, tasks % self.partitions))  # stable: records of a task keep their order
        begins = np.flatnonzero(np.diff(tasks[order], prepend=-1)).tolist()
        index = np.empty(len(batch), np.int32)
        new = []
        hashes = batch.sequence_hashes
        for begin, end in pairwise([*begins, len(order)]):
            rows = order[begin:end]
            index[rows], first = self.numbers.number(int(tasks[rows[0]]), hashes[rows])
            new.append(rows[first])
        fresh = np.concatenate(new)
        programs = [tasks[fresh].astype(np.int32), index[fresh], hashes[fresh], batch.step_texts(fresh)]
        self._write("programs", _PROGRAM, programs, tasks[fresh])
        measured = [
            tasks[order].astype(np.int32),
            index[order],
            platforms[order].astype(np.uint16),
            batch.latencies[order],
            batch.errors[order],
            _costs(batch, order),
        ]
        self._write("measured", _MEASURED, measured, tasks[order])

    def _write(self, name: str, schema: pa.Schema, columns: list[Any], tasks: NDArray[np.int64]) -> None:
        """Write rows that are sorted by partition."""
        rows = pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
        ends = np.searchsorted(tasks % self.partitions, np.arange(self.partitions), side="right")
        begin = 0
        for partition, end in enumerate(ends.tolist()):
            if end > begin:
                self._writer(name, partition, schema).write_batch(rows.slice(begin, end - begin))
            begin = end

    def _writer(self, name: str, partition: int, schema: pa.Schema) -> pa.RecordBatchStreamWriter:
        key = name, partition
        if key not in self._writers:
            options = pa.ipc.IpcWriteOptions(compression=COMPRESSION)
            path = str(self._path(name, partition))
            self._writers[key] = pa.ipc.new_stream(pa.OSFile(path, "wb"), schema, options=options)
        return self._writers[key]

    def _path(self, name: str, partition: int) -> Path:
        return self.folder / f"{name}-{partition}.arrows"

    def tables(self) -> Iterator[pa.Table]:
        """Each partition as a table of `shards.SCHEMA`, sorted by task; its files are removed.

        Raises:
            OSError: e.g. the disk is full.
        """
        for writer in self._writers.values():
            writer.close()
        used = sorted({partition for _, partition in self._writers})
        self._writers.clear()
        for partition in used:
            yield _merged(self._read("programs", partition), self._read("measured", partition))

    def _read(self, name: str, partition: int) -> pa.Table:
        path = self._path(name, partition)
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            table = stream.read_all()
        path.unlink()
        return table


def _merged(programs: pa.Table, measured: pa.Table) -> pa.Table:
    """Programs sorted by task and number, each with its measurements in their order."""
    keys, programs = _sorted(programs)
    measured_keys, measured = _sorted(measured)
    offsets = np.searchsorted(measured_keys, np.append(keys, np.iinfo(np.int64).max))
    measurement = SCHEMA.field("measurements").type.value_type
    rows = pa.StructArray.from_arrays(
        [measured.column(field.name).combine_chunks() for field in measurement], fields=list(measurement)
    )
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), rows)
    columns = [programs.column(name) for name in ("task", "sequence_hash", "steps")]
    return pa.table([*columns, lists], schema=SCHEMA)


def _sorted(table: pa.Table) -> tuple[NDArray[np.int64], pa.Table]:
    """A table by ascending (task, index), stable, and that key as one number."""
    keys = table.column("task").to_numpy().astype(np.int64) << 32 | table.column("index").to_numpy()
    order = np.argsort(keys, kind="stable")
    return keys[order], table.take(pa.array(order))


def _costs(batch: RecordBatch, rows: NDArray[np.int64]) -> pa.Array:
    """The repeats of records, a list each."""
    begins, counts = batch.cost_offsets[rows], np.diff(batch.cost_offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    values = np.repeat(begins - offsets[:-1], counts) + np.arange(offsets[-1])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(batch.cost_values[values]))
