"""One writer a folder: a lock that its holder's end breaks, and that says who holds it."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = ".lock"


@contextmanager
def held(folder: str | os.PathLike[str], error: type[Exception], cure: str) -> Iterator[None]:
    """Hold a folder: nobody else writes there meanwhile.

    The kernel drops the lock of a process that is gone, however it ended; a file that it left locks nothing.

    Args:
        folder: made if need be.
        error: what to raise where another process holds it, or nobody can write there.
        cure: what to do instead of waiting, in words.

    Raises:
        Exception: of the type `error`; its sentence names the process and its command.
    """
    place = Path(folder)
    while True:
        opened = _opened(place, error, cure)
        try:
            _lock(opened, place, error, cure)
            if not _is_there(opened, place / LOCK):
                continue  # who held it removed the file just now: take the next one
            _say_who(opened)
            try:
                yield
            finally:
                (place / LOCK).unlink(missing_ok=True)
            return
        finally:
            os.close(opened)


def _opened(place: Path, error: type[Exception], cure: str) -> int:
    try:
        place.mkdir(parents=True, exist_ok=True)
        return os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as fault:
        raise error(
            f"{place}: expected a folder that can be written to, found: {fault.strerror}; {cure}"
        ) from fault


def _lock(opened: int, place: Path, error: type[Exception], cure: str) -> None:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        raise error(
            f"{place}: expected nobody else to write there, found {_holder(place / LOCK)}; "
            f"wait for its end, or {cure}"
        ) from fault


def _is_there(opened: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(opened), path.stat())
    except FileNotFoundError:
        return False


def _say_who(opened: int) -> None:
    command = " ".join([Path(sys.argv[0] or "python").name, *sys.argv[1:]])
    text = json.dumps({"pid": os.getpid(), "command": command, "since": time.strftime("%Y-%m-%d %H:%M:%S")})
    os.ftruncate(opened, 0)
    os.pwrite(opened, text.encode(), 0)


def _holder(lock: Path) -> str:
    try:
        who = json.loads(lock.read_text(encoding="utf-8"))
        return f"process {who['pid']}, {who['command']}, since {who['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process that does"
