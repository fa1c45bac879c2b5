"""A folder that is written beside its place and replaces it completely, or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tlp_tvm.errors import DatasetError
from tlp_tvm.records.source import is_built

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def fresh_folder(target: Path, *, replace: bool) -> Iterator[Path]:
    """Write a dataset under another name; it takes its place when the block ends.

    What a build cut short left behind is removed by the next one.

    Args:
        target: of the folder in the end.
        replace: a dataset that lies there already gives way, once the new one is whole.

    Yields:
        Where to write. It is removed where the block raises.

    Raises:
        DatasetError: something else lies there, or another build is writing there.
        OSError: as the block does; a full disk is said to be one.
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100 - a link in the path shall stay one
    fresh, old = (target.with_name(f".{target.name}.{suffix}") for suffix in ("partial", "old"))
    if old.exists() and not target.exists():  # cut short between the two renames below
        old.rename(target)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        if not is_built(target):
            raise DatasetError(
                f"{target}: expected a new or empty folder, found other files; choose another folder"
            )
        if not replace:
            raise DatasetError(
                f"{target}: expected a new folder, found a built dataset; choose another folder, or replace "
                "it with `replace`"
            )
    fresh.mkdir(parents=True, exist_ok=True)
    lock = os.open(fresh, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DatasetError(f"{fresh}: expected no other build of {target}, found one running") from error
        _empty(fresh)
        try:
            yield fresh
            os.fsync(lock)
            _take_place(fresh, target, old)
        except OSError as error:
            shutil.rmtree(fresh, ignore_errors=True)
            if error.errno in _NO_ROOM:
                raise OSError(
                    f"{target}: expected room to write a dataset, found none ({os.strerror(error.errno)}); "
                    "the old content is unchanged"
                ) from error
            raise
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        os.close(lock)


def _take_place(fresh: Path, target: Path, old: Path) -> None:
    if target.exists() and any(target.iterdir()):
        shutil.rmtree(old, ignore_errors=True)
        target.rename(old)
    try:
        fresh.rename(target)  # also over an empty folder
    except BaseException:
        if old.exists():
            old.rename(target)
        raise


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
