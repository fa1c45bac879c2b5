"""Packs a collection: one compressed file per task, and the table of workloads."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from tlp_tvm.errors import CollectionError, DatasetError
from tlp_tvm.files import read_unpacked, write_whole
from tlp_tvm.folder_lock import held
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
        CollectionError: another process writes to it.
    """
    path = Path(folder)
    if not (path / TASK_TABLE).is_file():
        raise DatasetError(f"{path}: expected a dataset folder with {TASK_TABLE}, found none")
    before = after = 0
    with held(path, CollectionError, "pack when it ends"):
        files = sorted(path.glob("[!.]*/*/*.json"))
        for file in [*files, *path.glob(WORKLOADS)]:
            before += file.stat().st_size
            after += _pack(file)
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
