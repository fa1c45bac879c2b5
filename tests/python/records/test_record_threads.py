"""Blocks of lines in several threads: their order, their errors, and nothing left open behind them."""

from __future__ import annotations

import gzip
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logs import WriteLog
from tlp_tvm.ansor.reading.records import iter_records
from tlp_tvm.errors import RecordError
from tlp_tvm.records import record_files
from tlp_tvm.records.detect import read_records
from tlp_tvm.records.record_files import parse_blocks


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_files, "BLOCK_BYTES", 64)


def numbered_files(folder: Path) -> tuple[list[str], list[tuple[int, bytes]]]:
    """Files of numbered lines, some without the last newline, some packed, one empty; and their texts."""
    files, texts = [], []
    for k, count in enumerate((500, 0, 1, 300)):
        text = b"\n".join(b"line %d of %d" % (i, k) for i in range(count))
        path = folder / (f"{k}.log.gz" if k % 3 == 0 else f"{k}.log")
        path.write_bytes(gzip.compress(text) if k % 3 == 0 else text)
        files.append(str(path))
        if text:
            texts.append((k, text + b"\n"))
    return files, texts


@pytest.mark.usefixtures("small_blocks")
def test_every_line_comes_once_and_in_order(tmp_path: Path, threads: int) -> None:
    files, texts = numbered_files(tmp_path)

    def parse(text: memoryview) -> bytes:
        time.sleep(0.002 * (text[5] == ord("1")))  # some blocks take longer than those after them
        return bytes(text)

    blocks = list(parse_blocks(files, parse, threads))

    assert all(block.endswith(b"\n") for _, block in blocks)
    assert len(blocks) > 100
    joined: dict[int, bytes] = {}
    for file, block in blocks:
        joined[file] = joined.get(file, b"") + block
    assert list(joined.items()) == texts


@pytest.mark.usefixtures("small_blocks")
def test_a_line_longer_than_any_block(tmp_path: Path, threads: int) -> None:
    lines = [b"a" * size for size in (1, 63, 64, 65, 1000, 3)]
    path = tmp_path / "log.json"
    path.write_bytes(b"\n".join(lines))
    text = b"".join(bytes(block) for _, block in parse_blocks([str(path)], bytes, threads))
    assert text.split(b"\n")[:-1] == lines


@pytest.mark.usefixtures("small_blocks")
def test_an_unreadable_file_is_reported_after_what_stands_before_it(tmp_path: Path, threads: int) -> None:
    files, _ = numbered_files(tmp_path)
    read: list[bytes] = []
    blocks = parse_blocks([files[0], str(tmp_path / "missing"), files[3]], bytes, threads)
    with pytest.raises(FileNotFoundError, match="missing"):
        read.extend(block for _, block in blocks)
    assert b"".join(read).count(b"\n") == 500


def test_an_error_of_parsing_is_raised(tmp_path: Path, threads: int) -> None:
    files, _ = numbered_files(tmp_path)

    def parse(text: memoryview) -> None:
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        list(parse_blocks(files, parse, threads))


@pytest.mark.usefixtures("small_blocks")
def test_leaving_early_leaves_no_thread_and_no_file(tmp_path: Path, threads: int) -> None:
    files, _ = numbered_files(tmp_path)
    blocks = parse_blocks(files, bytes, threads)
    next(blocks)
    blocks.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name.startswith("tlp-tvm-records")]
    # A file left open would be a ResourceWarning, and warnings are errors.


def test_one_thread_is_the_callers(tmp_path: Path) -> None:
    files, _ = numbered_files(tmp_path)
    seen = {name for _, name in parse_blocks(files, lambda _: threading.current_thread().name, 1)}
    assert seen == {threading.current_thread().name}


@pytest.mark.usefixtures("small_blocks")
def test_several_threads_parse(tmp_path: Path) -> None:
    files, _ = numbered_files(tmp_path)

    def parse(text: memoryview) -> int:
        time.sleep(0.001)
        return threading.get_ident()

    assert len({ident for _, ident in parse_blocks(files, parse, 4)}) > 1


# Records through those blocks.


def test_lines_are_numbered_anew_in_each_file(
    record: dict[str, Any], write_log: WriteLog, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_files, "BLOCK_BYTES", 2000)
    files = [write_log([record] * count, name=f"{count}.json") for count in (3, 20, 7)]
    files.append(files[-1])  # the same once more
    batch = read_records(files, threads=threads)
    assert batch.line_numbers.tolist() == [*range(1, 4), *range(1, 21), *range(1, 8), *range(1, 8)]
    bad = write_log([record] * 9 + ["{}"], name="bad.json")
    with pytest.raises(RecordError, match=r"bad\.json:10: expected"):
        read_records([*files, bad], threads=threads)


def test_the_first_bad_line_is_the_one_reported(
    record: dict[str, Any], write_log: WriteLog, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_files, "BLOCK_BYTES", 2000)
    lines: list[Any] = [record] * 200
    for bad in (57, 58, 120, 199):
        lines[bad] = "{}"
    with pytest.raises(RecordError, match=r"log\.json:58: "):
        read_records(write_log(lines), threads=threads)


def test_batches_are_no_larger_than_asked(
    record: dict[str, Any], write_log: WriteLog, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = json.dumps(record)
    monkeypatch.setattr(record_files, "BLOCK_BYTES", 10 * len(line))
    log = write_log([line] * 200)
    sizes = [len(batch) for batch in iter_records(log, batch_size=25, threads=threads)]
    assert sum(sizes) == 200
    assert max(sizes) <= 25
    assert np.mean(sizes) > 15
    # A block that has more than a batch may is a batch of its own.
    assert max(len(batch) for batch in iter_records(log, batch_size=3, threads=threads)) <= 10
