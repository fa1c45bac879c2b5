"""While others work nothing is timed, and then it goes on by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from test_collection import TASKS, settings

from tlp_tvm.collection import CollectObserver, collect, collecting


class Heard(CollectObserver):
    """What was told, in order."""

    def __init__(self) -> None:
        self.told: list[float | str] = []

    def waits(self, cores: float) -> None:
        self.told.append(cores)

    def measured(self, programs: int, tasks_done: int, failures: Mapping[str, int]) -> None:
        self.told.append("measured")


class Others:
    """Busy for two looks."""

    def __init__(self) -> None:
        self.found = [1.5, 0.5]

    def cores(self) -> float:
        return self.found.pop(0) if self.found else 0.1


@pytest.mark.parametrize(("busy", "waits"), [(0.25, [1.5, 0.5]), (1.0, [1.5]), (0.0, [])])
def test_a_collection_waits_for_others_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: float, waits: list[float]
) -> None:
    monkeypatch.setattr(collecting, "OtherWork", Others)
    monkeypatch.setattr(collecting, "_POLL_S", 0.01)
    heard = Heard()

    result = collect(settings(tmp_path, programs=1, busy=busy), heard)

    assert result.finished
    assert heard.told == [*waits, *["measured"] * TASKS]
