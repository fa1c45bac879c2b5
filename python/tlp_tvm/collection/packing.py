"""Packing a collection: every task's records into one compressed file, and the table of workloads too."""

from __future__ import annotations

import fcntl
import gzip
import os
from pathlib import Path

from tlp_tvm.errors import CollectionError, DatasetError
from tlp_tvm.files import read_unpacked, write_whole
from tlp_tvm.logs import mend_log
from tlp_tvm.records.source import TASK_TABLE, WORKLOADS


def pack(folder: str | os.PathLike[str]) -> tuple[int, int]:
    """Compress the records of a dataset folder; what was packed before stays in front.

    Killed at any moment, it leaves every record in one of the two files of its task, and the same call ends
    the work. The same records give the same bytes.

    Args:
        folder: of a collection.

    Returns:
        Bytes before and after.

    Raises:
        DatasetError: it is no dataset folder.
        CollectionError: a collection is writing to it.
    """
    path = Path(folder)
    if not (path / TASK_TABLE).is_file():
        raise DatasetError(f"{path}: expected a dataset folder with {TASK_TABLE}, found none")
    before = after = 0
    for platform in sorted(
        each for each in path.iterdir() if each.is_dir() and not each.name.startswith(".")
    ):
        with (platform / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CollectionError(
                    f"{platform}: expected nobody to collect there, found a process that does; "
                    "pack when it ends"
                ) from error
            for file in sorted(platform.glob("*/*.json")):
                before += file.stat().st_size
                after += _pack(file)
        (platform / ".lock").unlink()
    if (table := path / WORKLOADS).exists():
        with table.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a collection of another platform may begin
            before += table.stat().st_size
            after += _pack(table)
    return before, after


def _pack(file: Path) -> int:
    mend_log(file)
    packed = file.with_name(f"{file.name}.gz")
    old = read_unpacked(packed, CollectionError) if packed.exists() else b""
    new = file.read_bytes()
    if not old.endswith(new):  # else it was killed before it removed the file
        write_whole(packed, gzip.compress(old + new, mtime=0))
    file.unlink()
    return packed.stat().st_size
