"""Collecting while the wall clock jumps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from test_collection import settings

from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.collection import collect


def test_what_is_spent_follows_no_wall_clock(tmp_path: Path, shifting_clock: Callable[[], float]) -> None:
    result = collect(settings(tmp_path, programs=1))

    assert min(result.seconds.values()) > 0
    assert sum(result.seconds.values()) <= shifting_clock()
    elapsed = read_records(tmp_path / "here").elapsed
    assert ((elapsed > 0) & (elapsed < shifting_clock())).all()
