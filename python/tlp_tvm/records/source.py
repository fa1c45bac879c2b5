"""The source of a dataset's records: a dataset folder with its table of tasks, or plain record files.

A dataset folder:

    <platform>/<split>/*.json.gz   measure records (also .json, .log, .log.gz)
    tasks.json                     a list of {"workload_key", "network", "weight", "split", "measured"}

One entry per task and network; `weight` is how often the task occurs in the network, `split` the network's.
Tasks that are not "measured" are skipped; an entry without that key counts as measured.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tlp_tvm.errors import DatasetError
from tlp_tvm.files import read_unpacked
from tlp_tvm.records.detect import framework_of
from tlp_tvm.records.record_files import record_files

TASK_TABLE = "tasks.json"

COLLECTION = "collection.json"
"""What a folder of `collect` says of how its programs were measured."""

WORKLOADS = "database_workload.json"
"""What MetaSchedule's records compute, a line each: its table of workloads."""

MANIFEST = "manifest.json"
"""What a built dataset has instead."""

PLAIN_NETWORK = "records"
"""Stands for the network of tasks whose network is not known; each counts once in it."""

PLAIN_SPLIT = "train"
"""The split of plain record files."""

PathLike = str | os.PathLike[str]


def workload_lines(table: Path) -> list[str]:
    """The lines of a table of workloads: those of its packed part, then those that came since.

    Args:
        table: its plain name; the packed part has .gz behind it.

    Raises:
        DatasetError: the packed part is damaged, or a line is no text.
    """
    packed = table.with_name(f"{table.name}.gz")
    data = b"".join(read_unpacked(part, DatasetError) for part in (packed, table) if part.is_file())
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(
            f"{table}:{line}: expected text in UTF-8, found byte {data[error.start]}; fetch or write it again"
        ) from error
    return text.removesuffix("\n").split("\n") if text else []  # a line may hold U+2028


@dataclass(frozen=True)
class RecordGroup:
    """Record files of one platform and split; plain files say their platform by their target only."""

    files: tuple[str, ...]
    split: str = PLAIN_SPLIT
    platform: str | None = None


def noted_platforms(folder: Path) -> dict[str, dict[str, Any]]:
    """What a folder of `collect` says of its platforms.

    Args:
        folder: need not exist.

    Returns:
        Platform -> how it was measured; empty where the folder does not say.
    """
    try:
        platforms = json.loads((folder / COLLECTION).read_text(encoding="utf-8"))["platforms"]
        return {str(platform): dict(noted) for platform, noted in platforms.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


@dataclass(frozen=True)
class DatasetSource:
    """All record files of a dataset and what its table says of its tasks."""

    name: str
    groups: tuple[RecordGroup, ...]
    table: dict[str, list[dict[str, Any]]] | None = None
    """Workload key -> its measured entries; None for plain record files."""
    table_file: str | None = None
    is_complete: bool = True
    """Records of tasks that the table lacks are an error."""

    @property
    def files(self) -> list[str]:
        """The record files, in the order in which they are read."""
        return [file for group in self.groups for file in group.files]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the lines that `sha256sum` prints for the sorted files, the table among them."""
        if self.table_file is None:
            return _digest(self.files, Path())
        return _digest([self.table_file, *self.files], Path(self.table_file).parent)

    @cached_property
    def framework(self) -> str:
        """Whose records the files have.

        Raises:
            DatasetError: they have records of several.
        """
        return framework_of(self.files, self.name)

    def weights(self, workload_key: str, split: str) -> dict[str, int]:
        """How often a task occurs in each network of a split."""
        if self.table is None:
            return {PLAIN_NETWORK: 1}
        entries = self.table.get(workload_key, [])
        return {str(e["network"]): int(e["weight"]) for e in entries if e["split"] == split}


def is_built(path: PathLike) -> bool:
    """Whether a folder looks like a built dataset, and not like one of records."""
    return (Path(path) / MANIFEST).is_file() and not (Path(path) / TASK_TABLE).exists()


def find_source(
    source: PathLike | Sequence[PathLike], platforms: Sequence[str] | None = None
) -> DatasetSource:
    """Find the record files of a dataset folder (one with a tasks.json), a log, or a list of logs.

    Args:
        source: where to look.
        platforms: the platforms of a dataset folder to take, in this order; all of them when None.

    Raises:
        DatasetError: nothing is there, the table of tasks is damaged, or a platform is missing.
    """
    if isinstance(source, (str, os.PathLike)) and (Path(source) / TASK_TABLE).is_file():
        return _dataset_folder(Path(source), platforms)
    try:
        files = record_files(source)
    except FileNotFoundError as error:
        raise DatasetError(str(error)) from error
    missing = [file for file in files if not Path(file).is_file()]
    if missing:
        raise DatasetError(f"{missing[0]}: expected a dataset folder or a record file, found nothing")
    name = str(source) if isinstance(source, (str, os.PathLike)) else f"{len(files)} record files"
    return DatasetSource(name, (RecordGroup(tuple(files)),))


def _dataset_folder(folder: Path, platforms: Sequence[str] | None) -> DatasetSource:
    table = _read_table(folder / TASK_TABLE)
    found = sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    for platform in platforms or ():
        if platform not in found:
            raise DatasetError(
                f'{folder}: expected one of the platforms {", ".join(found)}, found "{platform}"'
            )
    groups = [
        RecordGroup(tuple(record_files(split)), split.name, platform)
        for platform in (platforms or found)
        for split in sorted((folder / platform).iterdir())
        if split.is_dir()
    ]
    if not groups:
        raise DatasetError(f"{folder}: expected folders <platform>/<split> with records, found none")
    return DatasetSource(str(folder), tuple(groups), table, str(folder / TASK_TABLE))


def _read_table(path: Path) -> dict[str, list[dict[str, Any]]]:
    table: dict[str, list[dict[str, Any]]] = {}
    for entry in table_entries(path, DatasetError):
        if entry.get("measured", True):
            table.setdefault(entry["workload_key"], []).append(entry)
    return table


def table_entries(path: Path, error: type[Exception]) -> list[dict[str, Any]]:
    """Every entry of a table of tasks, measured or not.

    Args:
        path: of the table.
        error: what to raise.

    Raises:
        Exception: of the type `error`: it is no table, or an entry is not as it should be.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as fault:
        raise error(f"{path}: expected a JSON list of tasks, found {fault}") from fault
    if not isinstance(entries, list):
        raise error(f"{path}: expected a JSON list of tasks, found {type(entries).__name__}")
    for i, entry in enumerate(entries):
        for key, kind in (("workload_key", str), ("network", str), ("weight", int), ("split", str)):
            value = entry.get(key) if isinstance(entry, dict) else None
            if not isinstance(value, kind):
                raise error(f'{path}: entry {i}: expected "{key}" as {kind.__name__}, found {value!r}')
        flop = entry.get("flop")
        if flop is not None and not (type(flop) in (int, float) and math.isfinite(flop)):
            raise error(f'{path}: entry {i}: expected "flop" as a number of operations, found {flop!r}')
    return entries


def _digest(files: Sequence[str], root: Path) -> str:
    lines = []
    for file in files:
        path = Path(file)
        name = path.relative_to(root) if path.is_relative_to(root) else path.name
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n")
    return hashlib.sha256("".join(sorted(lines, key=lambda line: line[66:])).encode()).hexdigest()
