"""Recognises the framework of a dataset, and reads its records and rows.

A row of a dataset has a program's steps as text: of Ansor the steps of a measure record, of MetaSchedule the
JSON of a trace. Either is read natively, and no TVM is needed for it.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from tlp_tvm.errors import DatasetError
from tlp_tvm.framework import DEFAULT, FRAMEWORKS, framework_named
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.record_batch import RecordBatch
from tlp_tvm.records.record_files import record_files

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

BATCH_SIZE = 16384

_LOOKED_AT = 64
"""Bytes of a file that tell whose records it has."""


def framework_of(files: Sequence[str], name: str = "records") -> str:
    """Whose records some files have; empty and damaged files say nothing.

    Args:
        files: plain or .gz.
        name: of all of them, for messages.

    Raises:
        DatasetError: they have those of several.
    """
    first: dict[str, str] = {}
    for file in files:
        if begin := _begin(file):
            found = next((each for each in FRAMEWORKS if framework_named(each).wrote(begin)), DEFAULT)
            first.setdefault(found, file)
    if len(first) > 1:
        said = " and ".join(f"{file} of {framework}" for framework, file in sorted(first.items()))
        raise DatasetError(f"{name}: expected records of one framework, found {said}; use them one at a time")
    return next(iter(first), DEFAULT)


def read_records(
    source: Source, *, errors: Literal["raise", "skip"] = "raise", threads: int = 0
) -> RecordBatch:
    """Read every record of a log, a list of logs, or a folder (*.json, *.log, also .gz; sorted).

    Args:
        source: where the records are, of either framework.
        errors: "raise" stops at the first bad line; "skip" passes over it and counts it in `skipped`.
        threads: native threads; 0 for all cores. The result does not depend on it.

    Raises:
        RecordError: a line is no record, or a .gz is damaged.
        DatasetError: records of MetaSchedule lack their table of workloads.
        OSError: a file cannot be read.
    """
    files = record_files(source)
    return framework_named(framework_of(files)).read(files, errors, threads)


def iter_records(
    source: Source,
    *,
    batch_size: int = BATCH_SIZE,
    errors: Literal["raise", "skip"] = "raise",
    threads: int = 0,
) -> Iterator[RecordBatch]:
    """The same in batches, memory bounded whatever the size of the input.

    Args:
        source: where the records are, of either framework.
        batch_size: records of a batch, at most; a block of text that has more is a batch of its own.
        errors: as for `read_records`.
        threads: as for `read_records`.
    """
    files = record_files(source)
    yield from framework_named(framework_of(files)).batches(files, errors, threads, batch_size)


def iter_rows(
    framework: str, files: Sequence[str], *, errors: Literal["raise", "skip"] = "raise", threads: int = 0
) -> Iterator[RecordBatch]:
    """The records of files in batches, memory bounded whatever their size.

    Args:
        framework: whose records.
        files: plain or .gz.
        errors: as for `read_records`.
        threads: as for `read_records`.

    Raises:
        RecordError: a line is no record.
        DatasetError: records of MetaSchedule lack their table of workloads.
    """
    yield from framework_named(framework).batches(files, errors, threads, BATCH_SIZE)


def check_layout(layout: FeatureLayout, framework: str, name: str) -> None:
    """Refuse a layout, and so a model, of another framework than a dataset's.

    Raises:
        DatasetError: it is of another.
    """
    if layout.framework != framework:
        raise DatasetError(
            f'{name}: expected a layout of {framework}, whose programs it has, found "{layout.name}" of '
            f"{layout.framework}; choose a model or a `layout` of {framework}"
        )


def _begin(file: str) -> bytes:
    """The first bytes of a file; none of one that cannot be read, whose reader will say so."""
    try:
        with gzip.open(file) if file.endswith(".gz") else Path(file).open("rb") as opened:
            return opened.read(_LOOKED_AT).lstrip()
    except (OSError, EOFError, zlib.error):
        return b""
