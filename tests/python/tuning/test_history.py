"""What was measured, read from a log."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logs import WriteLog
from tlp_tvm.errors import RecordError
from tlp_tvm.logs import mend_log
from tlp_tvm.tuning.history import best_programs, read_history

KEYS = ['["a", [1]]', '["b", [1]]', '["c", [1]]']
INF = float("inf")


def measured(record: dict[str, Any], key: str, latency: float) -> dict[str, Any]:
    line = copy.deepcopy(record)
    line["i"][0][0] = key
    line["r"] = [[1e10], 4, 1.0, 1] if latency == INF else [[latency], 0, 1.0, 1]
    return line


@pytest.fixture
def log(record: dict[str, Any], write_log: WriteLog) -> Path:
    order = [(0, INF), (0, 4.0), (1, 2.0), (0, 5.0), (2, INF), (1, 1.0), (0, 3.0)]
    lines = [measured(record, KEYS[task], latency) for task, latency in order]
    return write_log([*lines[:3], measured(record, '["other", [1]]', 9.0), *lines[3:]])


def test_a_log_gives_counts_and_latencies_of_each_task(log: Path) -> None:
    history = read_history(log, KEYS)
    assert len(history) == 7  # the record of another task is passed over
    assert list(history.counts) == [4, 2, 1]
    assert list(history.failures) == [1, 0, 1]
    assert list(history.first) == [4.0, 2.0, INF]
    assert list(history.best) == [3.0, 1.0, INF]


def test_the_estimate_counts_a_task_with_its_first_program_until_a_better_one(log: Path) -> None:
    estimates = read_history(log, KEYS).estimates([1, 10, 100])
    assert list(estimates) == [24.0, 24.0, 24.0, 24.0, 24.0, 14.0, 13.0]


@pytest.mark.parametrize("text", [None, ""])
def test_no_log_is_an_empty_history(tmp_path: Path, text: str | None) -> None:
    log = tmp_path / "log.json"
    if text is not None:
        log.write_text(text)
    history = read_history(log, KEYS)
    assert len(history) == 0
    assert list(history.best) == [INF] * 3
    assert history.estimates([1, 1, 1]).shape == (0,)
    assert mend_log(log) == 0


def test_a_damaged_line_is_refused_with_its_place(log: Path) -> None:
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:2], lines[2][:40], *lines[3:]]) + "\n")
    with pytest.raises(RecordError, match=r"log\.json:3: "):
        read_history(log, KEYS)


def test_a_half_written_last_line_is_dropped(log: Path) -> None:
    whole = log.read_bytes()
    log.write_bytes(whole + whole[:57])
    assert mend_log(log) == 57
    assert log.read_bytes() == whole
    assert mend_log(log) == 0
    assert [path.name for path in log.parent.iterdir()] == ["log.json"]


def test_a_last_line_that_lacks_only_its_newline_is_kept(log: Path) -> None:
    whole = log.read_bytes()
    log.write_bytes(whole[:-1])
    assert mend_log(log) == 0
    assert log.read_bytes() == whole
    assert all(json.loads(line) for line in log.read_text().splitlines())
    assert np.isfinite(read_history(log, KEYS).best).sum() == 2


def test_the_fastest_program_of_each_task_is_found_in_several_logs(
    log: Path, record: dict[str, Any], write_log: WriteLog, tmp_path: Path
) -> None:
    others = [measured(record, KEYS[0], 0.5), measured(record, KEYS[1], 1.5), measured(record, KEYS[2], INF)]
    second = write_log(others, "second.json")

    best = best_programs([log, tmp_path / "none.json", second], KEYS)

    assert {key: latency for key, (latency, _) in best.items()} == {KEYS[0]: 0.5, KEYS[1]: 1.0}
    assert json.loads(best[KEYS[0]][1]) == others[0]
    assert best[KEYS[0]][1].endswith("\n")
    assert best_programs([second], KEYS[1:]).keys() == {KEYS[1]}
