"""Writing whole files or nothing, and reading whole packed ones."""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_UNPACKED_AT_LEAST = 64 << 20
_UNPACKED_RATIO = 200
"""A packed file may unpack to this multiple of its size, or to the bytes above. Records shrink to a
twentieth, a file of equal lines to a hundredth; gzip could grow a thousandfold and fill the memory."""

_PIECE = 1 << 20


def user_cache() -> Path:
    """The user's folder for files that can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tlp-tvm"


@contextmanager
def fresh_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to a new name in the same folder: readers see the old file or the whole new one.

    The file and its folder are on the disk before the block's end is over, so what is removed afterwards,
    because the new file has it, is not lost when the machine goes down.

    Args:
        path: of the file in the end.

    Yields:
        Where to write. It is renamed to `path` when the block ends, and removed where the block raises.

    Raises:
        OSError: it cannot be written.
    """
    target = Path(path)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield fresh
        sync(fresh)
        fresh.replace(target)
        sync(target.parent)
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error  # a full disk names no file
    finally:
        fresh.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Replace a file by `data`, text as UTF-8."""
    with fresh_file(path) as fresh:
        fresh.write_bytes(data.encode() if isinstance(data, str) else data)


def sync(path: str | os.PathLike[str]) -> None:
    """Bring a file, or a folder's list of names, to the disk.

    Raises:
        OSError: it cannot be written there.
    """
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read_unpacked(path: str | os.PathLike[str], error: type[Exception]) -> bytes:
    """The content of a file, unpacked if its name ends in .gz.

    Args:
        path: of the file.
        error: what to raise for a packed file that is damaged, or that would fill the memory.

    Raises:
        OSError: the file cannot be read.
    """
    data = Path(path).read_bytes()
    if Path(path).suffix != ".gz":
        return data
    most = max(_UNPACKED_AT_LEAST, _UNPACKED_RATIO * len(data))
    try:
        unpacked = _unpacked(data, most)
    except (EOFError, zlib.error) as fault:
        raise error(f"{path}: expected a whole gzip file, found {fault}; fetch or write it again") from fault
    if len(unpacked) > most:
        raise error(
            f"{path}: expected at most {most} bytes in a gzip file of {len(data)}, found more; "
            "if you trust it, unpack it yourself"
        )
    return unpacked


def _unpacked(data: bytes, most: int) -> bytes:
    """All members of a gzip file, one after the other; some more than `most` bytes of a longer one."""
    pieces: list[bytes] = []
    size = 0
    while data and size <= most:
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while not member.eof and size <= most:
            piece = member.decompress(data, _PIECE)
            data = member.unconsumed_tail
            if not piece and not data and not member.eof:
                raise EOFError("an end before the end-of-stream marker")
            pieces.append(piece)
            size += len(piece)
        data = member.unused_data.lstrip(b"\0") if member.eof else data
    return b"".join(pieces)


@contextmanager
def one_at_a_time(path: str | os.PathLike[str]) -> Iterator[None]:
    """Wait until no other process is in here with the same path; a killed one is not.

    Args:
        path: of a lock file, which is made and stays.
    """
    with Path(path).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_content(path: Path, form: str, version: int, what: str, error: type[Exception]) -> dict[str, Any]:
    """The JSON object in a file of ours that says of what format it is.

    Args:
        path: of the file.
        form: its "format".
        version: its "format_version".
        what: was expected there, e.g. "a comparison".
        error: raised where the file is missing, damaged or of another format.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        raise error(f"{path}: expected {what}, found {failure}") from failure
    found = (content.get("format"), content.get("format_version")) if isinstance(content, dict) else None
    if found != (form, version):
        raise error(f'{path}: expected "{form}" of version {version}, found {found}')
    described: dict[str, Any] = content
    return described
