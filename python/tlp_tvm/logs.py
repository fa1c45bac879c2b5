"""Logs with one record per line: lines are written whole and synced, and torn lines are repaired."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from pathlib import Path

from tlp_tvm.files import write_whole

_RECORD_BEGINS = re.compile(rb'\{"i": |\[\d+, \[\[')
"""One of Ansor's, one of MetaSchedule's."""


def append_line(log: str | os.PathLike[str], line: str) -> None:
    """Add one line to a log, whole or not at all, and bring it to the disk.

    Args:
        log: made if need be; its folder exists.
        line: without its newline.

    Raises:
        OSError: the line cannot be written; the log is as it was.
    """
    data = line.strip().encode() + b"\n"
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(file).st_size
        try:
            if os.write(file, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(log))
            os.fdatasync(file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(file, size)
            raise OSError(error.errno, error.strerror, str(log)) from error
    finally:
        os.close(file)


def mend_log(log: Path) -> int:
    """Drop what killed or failed writes left half-written: at the end, or in front of a later record.

    Call it only while holding the log's folder, as it rewrites the log.

    Args:
        log: one record per line; need not exist.

    Returns:
        Bytes dropped.
    """
    if not log.exists():
        return 0
    text = log.read_bytes()
    lines = text.splitlines(keepends=True)
    kept = [_mended(line) for line in lines]
    if kept != lines:
        write_whole(log, b"".join(kept))
    return sum(max(0, len(line) - len(left)) for line, left in zip(lines, kept, strict=True))


def _mended(line: bytes) -> bytes:
    """What is whole of a line; one that no kill explains stays for its reader to refuse."""
    if not line.strip() or _is_json(line):
        return line if line.endswith(b"\n") else line + b"\n"  # only the last can lack it
    for begin in reversed([found.start() for found in _RECORD_BEGINS.finditer(line)]):
        if begin and _is_json(line[begin:]):
            return line[begin:] if line.endswith(b"\n") else line[begin:] + b"\n"
    return line if line.endswith(b"\n") else b""


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
