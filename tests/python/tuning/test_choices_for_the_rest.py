"""Where time ends a tuning before each task has a program, the model chooses for the rest."""

from __future__ import annotations

import collections
import time
from pathlib import Path

import numpy as np
import pytest
from small_tunings import TASKS, Told, settings

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.measuring.stopping import StopOnInterrupt, Stopped
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_progress import Progress


def test_tasks_that_the_time_did_not_reach_get_what_the_model_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    monkeypatch.setattr(StopOnInterrupt, "time_is_up", property(lambda _: len(told.programs) >= 1))
    found = tune_network(settings(tmp_path, trials=100_000, minutes=60), told)

    measured = [task for task in found.tasks if task.trials]
    assert 1 <= len(measured) < TASKS
    assert all(task.chosen for task in found.tasks)
    assert all(np.isinf(task.best) for task in found.tasks if not task.trials)
    left = TASKS - len(measured)
    assert f"choosing programs of {left} tasks without one, by the model alone" in told.steps
    records = load_tvm().auto_scheduler.RecordReader(str(found.best))
    assert {str(inputs.task.workload_key) for inputs, _ in records} == {t.workload_key for t in found.tasks}
    assert sum(each.label is not None for each in found.operators) <= len(measured)
    assert found.end_to_end is not None
    assert found.end_to_end.difference < 1e-4

    monkeypatch.undo()
    more = tune_network(settings(tmp_path, trials=found.trials + TASKS), Told())
    assert sum(task.trials > 0 for task in more.tasks) > len(measured)


def test_time_is_kept_for_choosing_in_the_place_of_the_rest(tmp_path: Path) -> None:
    stop = StopOnInterrupt()
    stop.end_at(time.monotonic() + 100)
    stop.check()
    stop.end_at(time.monotonic())
    with pytest.raises(Stopped, match="the time of the tuning is over"):
        stop.check()
    stop.end_at(time.monotonic() + 200)
    stop.check()

    progress = Progress(tmp_path / "log", [1, 2], 0, [1e-3, np.inf], collections.Counter(), TuneObserver())
    assert progress.without == 1
    progress.ran(1, 1e-3)
    assert progress.without == 0
