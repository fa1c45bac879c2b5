"""Writing whole files or nothing, and reading whole packed ones."""

from __future__ import annotations

import fcntl
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def fresh_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to a new name in the same folder: readers see the old file or the whole new one.

    Args:
        path: of the file in the end.

    Yields:
        Where to write. It is renamed to `path` when the block ends, and removed where the block raises.
    """
    target = Path(path)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield fresh
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Replace a file by `data`, text as UTF-8."""
    with fresh_file(path) as fresh:
        fresh.write_bytes(data.encode() if isinstance(data, str) else data)


def read_unpacked(path: str | os.PathLike[str], error: type[Exception]) -> bytes:
    """The content of a file, unpacked if its name ends in .gz.

    Args:
        path: of the file.
        error: what to raise for a packed file that is damaged.

    Raises:
        OSError: the file cannot be read.
    """
    data = Path(path).read_bytes()
    if Path(path).suffix != ".gz":
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise error(f"{path}: expected a whole gzip file, found {fault}; fetch or write it again") from fault


@contextmanager
def one_at_a_time(path: str | os.PathLike[str]) -> Iterator[None]:
    """Wait until no other process is in here with the same path; a killed one is not.

    Args:
        path: of a lock file, which is made and stays.
    """
    with Path(path).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
