"""Earlier logs are a start: bred from, learned from, built with, and no trials of the new run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scorers import LinearScorer
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.errors import TuningError
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_settings import TuneResult, TuneSettings
from tlp_tvm.tuning.warm_start import gather, sources_of

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


class Told(TuneObserver):
    def __init__(self) -> None:
        self.plan: tuple[int, ...] = ()
        self.warm: tuple[int, int] = (0, 0)
        self.steps: list[str] = []

    def step(self, name: str) -> None:
        self.steps.append(name)

    def planned(self, tasks: int, trials: int, reused: int) -> None:
        self.plan = (tasks, trials, reused)

    def warmed(self, used: int, passed_over: int) -> None:
        self.warm = (used, passed_over)


def tune(out: Path, trials: int, *sources: Path, observer: TuneObserver | None = None) -> TuneResult:
    return tune_network(
        TuneSettings(
            network="mlp",
            out=out,
            model=LinearScorer(),
            target=TARGET,
            trials=trials,
            population=32,
            turns=1,
            measure=MeasureSettings(timing=Timing(repeat=1, min_repeat_ms=1), threads=0),
            warm_start=sources,
        ),
        observer,
    )


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> TuneResult:
    return tune(tmp_path_factory.mktemp("warm") / "first", 24)


def fast(first: TuneResult, path: Path) -> Path:
    """The first log, as if a thousand times faster, and with a program of another target."""
    lines = []
    for line in first.log.read_text().splitlines():
        value = json.loads(line)
        value["r"][0] = [cost / 1000 for cost in value["r"][0]]
        lines.append(json.dumps(value))
    value["i"][0][1] = "llvm -mcpu=nehalem"
    path.write_text("\n".join([*lines, json.dumps(value)]) + "\n")
    return path


def test_earlier_programs_are_a_start_but_no_trials(
    first: TuneResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught: list[int] = []
    learn = TLPCostModel.learn

    def spy(model: TLPCostModel, key: str, target: str, embeddings: Any, latencies: Any) -> None:
        taught.append(len(latencies))
        learn(model, key, target, embeddings, latencies)

    monkeypatch.setattr(TLPCostModel, "learn", spy)
    told = Told()
    second = tune(tmp_path / "second", 4, fast(first, tmp_path / "earlier.json"), observer=told)

    assert told.plan == (4, 4, 0)
    assert told.warm == (24, 1)
    assert (second.trials, second.reused, second.warm) == (4, 0, 24)
    assert sum(taught[:4]) == 24  # before anything was measured
    assert len(second.log.read_text().splitlines()) == 4
    known, new = read_records(tmp_path / "second" / "warm.json"), read_records(second.log)
    assert not set(known.sequence_hashes.tolist()) & set(new.sequence_hashes.tolist())
    for before, after in zip(first.tasks, second.tasks, strict=True):
        assert after.best == pytest.approx(before.best / 1000)
    assert sum(after.trials for after in second.tasks) == 4  # a task that has a program may wait
    assert second.end_to_end is not None
    assert second.end_to_end.difference < 1e-4


def test_records_of_other_tasks_and_targets_are_passed_over(first: TuneResult, tmp_path: Path) -> None:
    auto_scheduler = load_tvm().auto_scheduler
    tasks = [inputs.task for inputs, _ in auto_scheduler.RecordReader(str(first.log))]
    one = [task for task in tasks if task.workload_key == tasks[0].workload_key]

    folder = first.log.parent
    wanted = {(str(tasks[0].workload_key), str(tasks[0].target))}
    target = load_tvm().target.Target
    start = gather([folder, first.log], wanted, lambda text: str(target(text)), tmp_path / "warm.json")

    assert (start.used, start.passed_over) == (len(one), 48 - len(one))
    assert len(read_records(start.log)) == len(one)


def test_programs_of_the_same_operators_at_another_shape_are_measured_first(
    first: TuneResult, tmp_path: Path
) -> None:
    told = Told()
    settings = TuneSettings(
        network="mlp-b2",
        out=tmp_path / "second",
        model=LinearScorer(),
        target=TARGET,
        trials=16,
        measures_per_round=4,
        population=32,
        turns=1,
        measure=MeasureSettings(timing=Timing(repeat=1, min_repeat_ms=1), threads=0),
        warm_start=(first.log,),
        similar=True,
    )
    result = tune_network(settings, told)

    assert told.warm == (0, 24)  # none is of the same task
    assert "making programs of similar tasks fit" in told.steps
    assert result.trials == 16
    assert all(task.trials >= 1 for task in result.tasks)
    # The first programs have the steps of measured ones, but for the lengths of splits.
    batch, origin = read_records(result.log), read_records(first.log)
    shapes = {shape(origin.line(i)) for i in range(len(origin))}
    assert shape(batch.line(0)) in shapes


def shape(line: str) -> str:
    return json.dumps([step[:3] if step[0] == "SP" else step for step in json.loads(line)["i"][1][1]])


def test_a_missing_log_is_refused(tmp_path: Path) -> None:
    for source in (tmp_path, tmp_path / "log.json"):
        with pytest.raises(TuningError) as error:
            sources_of([source])
        assert str(error.value) == (
            f"`warm_start` {source}: expected a record log or the folder of a run, found none; choose another"
        )
