"""Whose programs a dataset has, and how each framework's records and rows are read.

A row of a dataset has a program's steps as text: of Ansor the steps of a measure record, of MetaSchedule the
JSON of a trace. Either is read natively, and no TVM is needed for it.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tlp_tvm import _core
from tlp_tvm.ansor.reading.records import RecordBatch, iter_records
from tlp_tvm.errors import DatasetError
from tlp_tvm.metaschedule.reading.records import TraceBatch, iter_batches

if TYPE_CHECKING:
    from tlp_tvm.layout import FeatureLayout

ANSOR, METASCHEDULE = "ansor", "metaschedule"
FRAMEWORKS = (ANSOR, METASCHEDULE)
"""Each is also the name of its preset layout."""

PRESETS_OF = {ANSOR: ("paper-cpu", "ansor"), METASCHEDULE: ("metaschedule",)}
"""The layouts that statistics are about, unless others are asked for."""

Batch = RecordBatch | TraceBatch

_RECORD = ('{"i": [["[]", ""], [[], ', ']], "r": [[0], 0, 0, 0], "v": "v0.2"}\n')
"""What makes a record of Ansor's steps alone; its task and result are never looked at."""

_LOOKED_AT = 64
"""Bytes of a file that tell whose records it has."""


def framework_of(files: Sequence[str], name: str = "records") -> str:
    """Whose records some files have: a line of MetaSchedule's is a list, one of Ansor's is not.

    Empty and damaged files say nothing.

    Args:
        files: plain or .gz.
        name: of all of them, for messages.

    Raises:
        DatasetError: they have both.
    """
    first: dict[str, str] = {}
    for file in files:
        if begin := _begin(file):
            first.setdefault(METASCHEDULE if begin.startswith(b"[") else ANSOR, file)
    if len(first) > 1:
        raise DatasetError(
            f"{name}: expected records of one framework, found {first[ANSOR]} of {ANSOR} and "
            f"{first[METASCHEDULE]} of {METASCHEDULE}; take each for itself"
        )
    return next(iter(first), ANSOR)


def framework_of_dataset(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> str:
    """Whose programs a built dataset, a dataset folder or record files have.

    Raises:
        DatasetError: there are none, or those of several.
    """
    from tlp_tvm.dataset.reading.manifest import read_manifest
    from tlp_tvm.records.source import find_source, is_built

    if isinstance(source, str | os.PathLike) and is_built(source):
        return read_manifest(Path(source))[0].framework
    return find_source(source).framework


def iter_rows(
    framework: str, files: Sequence[str], *, errors: Literal["raise", "skip"] = "raise", threads: int = 0
) -> Iterator[Batch]:
    """The records of files in batches; arguments as for `iter_records` of Ansor.

    Args:
        framework: whose records.
        files: see there.
        errors: see there.
        threads: see there.

    Raises:
        RecordError: a line is no record.
        DatasetError: records of MetaSchedule lack their table of workloads.
    """
    if framework == METASCHEDULE:
        yield from iter_batches(files, errors=errors, threads=threads)
    else:
        yield from iter_records(files, errors=errors, threads=threads)


def programs_of(framework: str, steps: pa.LargeStringArray, *, threads: int = 0) -> Batch:
    """Programs of shards, read natively: one record each, without task and result.

    Args:
        framework: whose programs.
        steps: of each program, as its row has them.
        threads: native threads; 0 for all cores.

    Raises:
        RecordError: the steps of a program are damaged.
    """
    before, after = ("", "\n") if framework == METASCHEDULE else _RECORD
    around = (pa.scalar(text, pa.large_string()) for text in (before, after, ""))
    first, last, between = around
    text = pc.binary_join_element_wise(first, steps, last, between)
    # An empty array has no buffer; a sliced one would start elsewhere, but a joined one is new.
    data = text.buffers()[2] or b""
    count = len(steps)
    nothing = np.zeros(count)
    if framework == METASCHEDULE:
        traces = _core.read_traces(bytes(data), "<dataset>", 1, "trace", False)
        return TraceBatch(
            tasks=[],
            task_ids=np.zeros(count, np.int32),
            latencies=nothing,
            errors=np.zeros(count, np.int32),
            lengths=traces.lengths(),
            cost_values=nothing,
            cost_offsets=np.arange(count + 1, dtype=np.int64),
            files=["<dataset>"],
            block=traces,
        )
    block = _core.read_block(data, "<dataset>", 1, False, threads)
    return RecordBatch(
        tasks=[],
        task_ids=np.zeros(count, np.int32),
        latencies=nothing,
        errors=np.zeros(count, np.int32),
        timestamps=np.zeros(count, np.int64),
        elapsed=nothing,
        lengths=block.lengths(),
        cost_values=nothing,
        cost_offsets=np.arange(count + 1, dtype=np.int64),
        files=["<dataset>"],
        file_ids=np.zeros(count, np.int32),
        line_numbers=np.arange(1, count + 1, dtype=np.int64),
        blocks=[block],
    )


def check_layout(layout: FeatureLayout, framework: str, name: str) -> None:
    """Refuse a layout, and so a model, of another framework than a dataset's.

    Raises:
        DatasetError: it is of another.
    """
    if layout.framework != framework:
        raise DatasetError(
            f'{name}: expected a layout of {framework}, whose programs it has, found "{layout.name}" of '
            f"{layout.framework}; choose a model or a --layout of {framework}"
        )


def _begin(file: str) -> bytes:
    """The first bytes of a file; none of one that cannot be read, whose reader will say so."""
    try:
        with gzip.open(file) if file.endswith(".gz") else Path(file).open("rb") as opened:
            return opened.read(_LOOKED_AT).lstrip()
    except (OSError, EOFError, zlib.error):
        return b""
