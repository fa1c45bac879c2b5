"""Finds record files and reads them in blocks of whole lines, parsed by several threads."""

from __future__ import annotations

import gzip
import io
import os
import threading
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tlp_tvm._core import RecordError

SUFFIXES = (".json", ".json.gz", ".log", ".log.gz")
"""Names of record files in a folder; a file named by the user may be called anything."""

NOT_RECORDS = frozenset(
    f"{name}.json"
    for name in (
        "tasks",
        "collection",
        "manifest",
        "comparison",
        "run",
        "tuned",
        "best",
        "warm",
        "database_workload",
    )
)
"""Files that this project writes beside the records of a folder, or copies of some records."""

BLOCK_BYTES = 1 << 20
"""Text read and parsed at a time, small enough to stay in a cache; only a longer line makes a block grow."""

LONGEST_LINE = 64 << 20
"""In bytes, unpacked: records have some thousands. Without a bound one line could fill the memory."""

BLOCKS_AHEAD = 2
"""Blocks a thread may be ahead of who takes them."""

Parsed = TypeVar("Parsed")
_Binary = gzip.GzipFile | io.FileIO


@dataclass(frozen=True)
class Block(Generic[Parsed]):
    """What `parse` made of a block of lines, or why the block could not be read."""

    number: int
    """Counted through all files."""
    file: int
    """Which of the files it is from."""
    parsed: Parsed | Exception


def record_files(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The record files that `source` names: a file, a folder (searched, sorted), or a list of both.

    In a folder the end of the name decides (`SUFFIXES`): log.json.bak.gz and log.json~ are left alone.

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
        found, others = [], []
        for file in sorted(str(file) for file in path.rglob("*")):
            base = Path(file).name
            if base.endswith(SUFFIXES) and base not in NOT_RECORDS:
                found.append(file)
            elif any(suffix in base for suffix in (".json", ".log")) and base not in NOT_RECORDS:
                others.append(base)
        if not found:
            hint = f"none but {', '.join(others[:3])}; name a file itself to read it" if others else "none"
            raise FileNotFoundError(f"{path}: expected record files ({', '.join(SUFFIXES)}), found {hint}")
        files.extend(found)
    return files


def parse_blocks(
    files: Sequence[str], parse: Callable[[memoryview], Parsed], threads: int = 0
) -> Iterator[tuple[int, Parsed]]:
    """`parse(block)` for the text of files in blocks of whole lines, unpacked where a name ends in .gz.

    Threads take turns at reading, and each parses what it read; the order is that of the lines. With one
    thread all of it happens in the caller's.

    Args:
        files: as `record_files` found them; each block comes with the index of its own.
        parse: gets a block, which is written over as soon as it returns.
        threads: 0 for all cores.

    Raises:
        RecordError: a .gz is damaged.
        OSError: a file cannot be read.
    """
    threads = threads or len(os.sched_getaffinity(0))
    lines = _Lines(files)
    buffers: deque[bytearray] = deque()

    def work() -> Block[Parsed] | None:
        try:
            buffer = buffers.pop()
        except IndexError:
            buffer = bytearray(BLOCK_BYTES)
        taken = lines.take(buffer)
        if taken is None:
            return None
        if isinstance(taken.parsed, Exception):
            return Block(taken.number, taken.file, taken.parsed)
        with memoryview(buffer) as whole, whole[: taken.parsed] as text:
            parsed = parse(text)
        buffers.append(buffer)
        return Block(taken.number, taken.file, parsed)

    blocks = _in_order(work, threads)
    try:
        for block in blocks:
            if isinstance(block.parsed, Exception):
                raise block.parsed
            yield block.file, block.parsed
    finally:
        blocks.close()
        lines.close()


def _in_order(work: Callable[[], Block[Parsed] | None], threads: int) -> Generator[Block[Parsed], None, None]:
    """What `work` returns until it returns None, by number; the caller's thread is one of the threads."""
    if threads == 1:
        while (only := work()) is not None:
            yield only
        return
    ready: dict[int, Block[Parsed]] = {}
    number = 0
    exhausted = False
    pool = ThreadPoolExecutor(threads - 1, thread_name_prefix="tlp-tvm-records")
    try:
        pending: deque[Future[Block[Parsed] | None]] = deque(
            pool.submit(work) for _ in range((threads - 1) * (1 + BLOCKS_AHEAD))
        )
        while True:
            while pending and (exhausted or pending[0].done()):
                if (done := pending.popleft().result()) is not None:
                    ready[done.number] = done
                    pending.append(pool.submit(work))
            while number in ready:
                yield ready.pop(number)
                number += 1
            if exhausted:
                return
            if (mine := work()) is None:
                exhausted = True
            else:
                ready[mine.number] = mine
    finally:
        pool.shutdown(cancel_futures=True)


class _Lines:
    """Files as one run of blocks; whoever asks gets the next."""

    def __init__(self, files: Sequence[str]) -> None:
        self._lock = threading.Lock()
        self._files = files
        self._file_number = -1
        self._file: _Binary | None = None
        self._rest = b""
        """The begin of a line, whose end stands in the next block."""
        self._number = 0

    def take(self, buffer: bytearray) -> Block[int] | None:
        """Fill `buffer` with whole lines, the last one's newline included; its block tells how many bytes."""
        with self._lock:
            try:
                size: int | Exception = self._fill(buffer)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                file = self._files[self._file_number]
                size = RecordError(
                    f"{file}: expected a whole gzip file, found {error}; fetch or write it again"
                )
            except Exception as error:  # noqa: BLE001 - raised again when it is this block's turn
                size = error
            if isinstance(size, Exception):
                self.close()
            if size == 0:
                return None
            self._number += 1
            return Block(self._number - 1, self._file_number, size)

    def _fill(self, buffer: bytearray) -> int:
        while self._file is not None or self._file_number + 1 < len(self._files):
            if self._file is None:
                self._file_number += 1
                self._file = _open(self._files[self._file_number])
            if size := self._fill_from(self._file, buffer):
                return size
            self._file.close()
            self._file = None
        return 0

    def _fill_from(self, file: _Binary, buffer: bytearray) -> int:
        size = len(self._rest)
        buffer[:size] = self._rest
        while True:
            if size >= LONGEST_LINE:
                name = self._files[self._file_number]
                raise RecordError(
                    f"{name}: expected lines of at most {LONGEST_LINE} bytes, found a longer one; "
                    "name a record file"
                )
            if size == len(buffer):
                buffer.extend(bytes(size))
            with memoryview(buffer) as whole, whole[size:] as room:
                count = file.readinto(room)
            if count == 0:  # the file's last line, which may lack its newline
                self._rest = b""
                if size:
                    buffer[size : size + 1] = b"\n"
                return size + 1 if size else 0
            if cut := buffer.rfind(b"\n", size, size + count) + 1:
                self._rest = bytes(buffer[cut : size + count])
                return cut
            size += count

    def close(self) -> None:
        """Leave the files; there are no more blocks."""
        self._files = self._files[: self._file_number + 1]
        if self._file is not None:
            self._file.close()
            self._file = None


def _open(path: str) -> _Binary:
    return gzip.open(path, "rb") if path.endswith(".gz") else Path(path).open("rb", buffering=0)
