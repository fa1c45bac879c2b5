from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tlp_tvm import files
from tlp_tvm.errors import DatasetError
from tlp_tvm.files import fresh_file, read_unpacked, write_whole


def test_a_file_and_its_folder_are_on_the_disk_before_the_old_one_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "card"
    path.write_text("old")
    seen = []

    def fsync(opened: int) -> None:
        seen.append((Path(f"/proc/self/fd/{opened}").readlink().name, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(path, "new")
    assert seen == [(f".card.{os.getpid()}", "old"), (tmp_path.name, "new")]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "card"
    path.write_text("old")
    with pytest.raises(OSError, match="No space left on device: '.*/card'"), fresh_file(path) as fresh:
        _write_some(fresh)
    with pytest.raises(FileNotFoundError, match="'other'"), fresh_file(path) as fresh:
        Path("other").read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["card"]
    assert path.read_text() == "old"


def _write_some(fresh: Path) -> None:
    fresh.write_text("ne")
    raise OSError(28, "No space left on device")


def test_packed_files_are_read_whole_members_and_all(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\n" * 500_000) + gzip.compress(b"two\n") + b"\0" * 10)
    assert read_unpacked(path, DatasetError) == b"one\n" * 500_000 + b"two\n"
    path.write_bytes(gzip.compress(b""))
    assert read_unpacked(path, DatasetError) == b""


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one two three")[:-9])
    with pytest.raises(DatasetError) as refused:
        read_unpacked(path, DatasetError)
    assert str(refused.value) == (
        f"{path}: expected a whole gzip file, found an end before the end-of-stream marker; "
        "fetch or write it again"
    )


def test_a_file_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_UNPACKED_AT_LEAST", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    size = path.stat().st_size
    with pytest.raises(DatasetError) as refused:
        read_unpacked(path, DatasetError)
    assert str(refused.value) == (
        f"{path}: expected at most {200 * size} bytes in a gzip file of {size}, found more; "
        "if you trust it, unpack it yourself"
    )
