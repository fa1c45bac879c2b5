from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tlp_tvm.errors import CollectionError
from tlp_tvm.folder_lock import LOCK, held

CURE = "choose another --out"

HOLD = """
import sys
from tlp_tvm.errors import CollectionError
from tlp_tvm.folder_lock import held
with held(sys.argv[1], CollectionError, ""):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_is_told_who_has_it_and_a_killed_process_has_it_no_more(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(CollectionError) as refused, held(tmp_path, CollectionError, CURE):
            pass
        process.kill()
    text, _, since = str(refused.value).partition(", since ")
    assert text == (
        f"{tmp_path}: expected nobody else to write there, found process {process.pid}, -c {tmp_path}"
    )
    assert since.endswith(f"; wait for its end, or {CURE}")
    with held(tmp_path, CollectionError, CURE):
        assert str(os.getpid()) in (tmp_path / LOCK).read_text()
    assert not (tmp_path / LOCK).exists()


def test_it_is_given_back_when_the_block_raises(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x"), held(tmp_path / "new", CollectionError, CURE):
        raise ValueError("x")
    with held(tmp_path / "new", CollectionError, CURE):
        pass


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two would hold the folder: one the old file, one the new."""
    flock, removed = fcntl.flock, []

    def remove_first(opened: int, how: int) -> None:
        flock(opened, how)
        if not removed:
            removed.append((tmp_path / LOCK).unlink())

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with held(tmp_path, CollectionError, CURE):
        assert (tmp_path / LOCK).exists()
        with pytest.raises(CollectionError, match="found process"), held(tmp_path, CollectionError, CURE):
            pass


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(CollectionError) as refused,
        held(tmp_path / "file" / "run", CollectionError, CURE),
    ):
        pass
    assert str(refused.value) == (
        f"{tmp_path}/file/run: expected a folder that can be written to, found: Not a directory; {CURE}"
    )
