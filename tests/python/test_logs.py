from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

import pytest

from tlp_tvm.logs import append_line, mend_log

RECORD = '{"i": [["[\\"k\\"]", "llvm"], [[], []]], "r": [[0.1], 0, 1, 2], "v": "v0.6"}'
TRACE = '[3, [[[], []], [0.1], {"kind": "llvm"}, []]]'


@pytest.mark.parametrize("record", [RECORD, TRACE])
@pytest.mark.parametrize("cut", [1, 12, 30])
def test_what_a_failed_write_left_in_front_of_a_record_is_dropped(
    tmp_path: Path, record: str, cut: int
) -> None:
    log = tmp_path / "log.json"
    log.write_text(f"{record}\n{record[:cut]}{record}\n{record}\n")
    assert mend_log(log) == cut
    assert log.read_text() == f"{record}\n" * 3
    assert mend_log(log) == 0


def test_the_last_line_loses_what_is_cut_and_gets_its_newline(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(f"{RECORD}\n{RECORD[:40]}")
    assert mend_log(log) == 40
    assert log.read_text() == f"{RECORD}\n"
    log.write_text(f"{RECORD}\n{RECORD}")
    assert mend_log(log) == 0
    assert log.read_text() == f"{RECORD}\n{RECORD}\n"


def test_a_line_that_no_kill_explains_stays_for_its_reader_to_refuse(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(f"{RECORD}\nsomebody's note\n{RECORD}\n")
    assert mend_log(log) == 0
    assert log.read_text() == f"{RECORD}\nsomebody's note\n{RECORD}\n"


def test_a_log_on_a_full_disk_stays_whole(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    append_line(log, RECORD)
    room = log.stat().st_size + 10
    before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[0][1]))
    try:
        with pytest.raises(OSError, match=r"No space left|too large"):
            append_line(log, RECORD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
        signal.signal(signal.SIGXFSZ, before[1])
    assert log.read_text() == f"{RECORD}\n"
    append_line(log, f"{RECORD}\n")
    assert [json.loads(line) for line in log.read_text().splitlines()] == [json.loads(RECORD)] * 2


def test_a_line_is_on_the_disk_when_the_call_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log.json"
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda _: synced.append(log.read_text()))
    append_line(log, RECORD)
    assert synced == [f"{RECORD}\n"]
    with pytest.raises(OSError, match="No space left"):
        append_line("/dev/full", RECORD)
