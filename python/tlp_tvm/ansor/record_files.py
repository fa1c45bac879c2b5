"""Which files hold records, and their text in blocks of whole lines."""

from __future__ import annotations

import gzip
import os
import queue
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from tlp_tvm._core import RecordError

SUFFIXES = (".json", ".json.gz", ".log", ".log.gz")
"""Names of record files in a folder; a file named by the user may be called anything."""

NOT_RECORDS = frozenset({"tasks.json", "run.json", "manifest.json"})
"""Names that this project gives to files beside the records of a folder."""

BLOCK_BYTES = 8 << 20
"""Text read at a time; a block grows only where a single line is longer."""

BLOCKS_AHEAD = 2
"""Blocks that are read, and unpacked, while the one before is parsed."""


def record_files(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The record files that `source` names: a file, a folder (searched, sorted), or a list of both.

    Raises:
        FileNotFoundError: a name is neither, or a folder holds no record file.
    """
    names = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    files: list[str] = []
    for name in names:
        path = Path(name)
        if not path.is_dir():
            files.append(str(path))
            continue
        found = sorted(
            str(p) for p in path.rglob("*") if p.name.endswith(SUFFIXES) and p.name not in NOT_RECORDS
        )
        if not found:
            raise FileNotFoundError(f"{path}: expected record files ({', '.join(SUFFIXES)}), found none")
        files.extend(found)
    return files


def blocks_of(path: str) -> Iterator[bytes]:
    """The text of a file, unpacked if its name ends in .gz, in blocks that end with a newline.

    Reading and unpacking go on in a thread while the caller parses.

    Raises:
        RecordError: the .gz is damaged.
        OSError: the file cannot be read.
    """
    blocks: queue.Queue[bytes | Exception | None] = queue.Queue(BLOCKS_AHEAD)
    cancelled = threading.Event()

    def put(item: bytes | Exception | None) -> bool:
        while not cancelled.is_set():
            try:
                blocks.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def read() -> None:
        try:
            for block in _whole_lines(path):
                if not put(block):
                    return
            put(None)
        except Exception as error:  # noqa: BLE001 - raised again where the blocks are used
            put(error)

    reader = threading.Thread(target=read, name="tlp-tvm-records", daemon=True)
    reader.start()
    try:
        while (item := blocks.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        cancelled.set()
        reader.join()


def _whole_lines(path: str) -> Iterator[bytes]:
    rest = b""
    with _open(path) as file:
        while True:
            try:
                text = file.read(BLOCK_BYTES)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise RecordError(
                    f"{path}: expected a whole gzip file, found {error}; fetch or write it again"
                ) from error
            if not text:
                break
            cut = text.rfind(b"\n") + 1
            if cut == 0:
                rest += text
                continue
            yield rest + text[:cut] if rest else text[:cut]
            rest = text[cut:]
    if rest:
        yield rest + b"\n"


def _open(path: str) -> BinaryIO:
    if path.endswith(".gz"):
        return cast(BinaryIO, gzip.open(path, "rb"))
    return Path(path).open("rb", buffering=0)
