"""Models choose by themselves: real breeding, real timings, killed and resumed."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from commands import refused, succeed
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.errors import ComparisonError
from tlp_tvm.evaluation.choice import model_choices
from tlp_tvm.evaluation.choice.choice_settings import ChoiceObserver, ChoiceSettings
from tlp_tvm.evaluation.choice.model_choices import RESULTS, choose, read_choices
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings

MODELS = ("epyc", "epyc-small")
ROWS = [(model, k) for model in MODELS for k in (1, 5)]


class Killed(BaseException):
    """In the place of a signal."""


class Dies(ChoiceObserver):
    """After its first task."""

    def chose(self, done: int, desc: str, words: str) -> None:
        raise Killed


class Counts(ChoiceObserver):
    """Tasks that were there, and that were added."""

    def __init__(self) -> None:
        self.there, self.added = 0, 0

    def planned(self, tasks: int, done: int) -> None:
        self.there = done

    def chose(self, done: int, desc: str, words: str) -> None:
        self.added += 1
        assert all(f"{model} " in words for model in MODELS)


def settings(out: Path, known: Path, **changes: Any) -> ChoiceSettings:
    given = ChoiceSettings(
        models=MODELS,
        networks=("mlp",),
        known=(known,),
        out=out,
        target="llvm -mcpu=core-avx2 -num-cores=1",
        tasks=2,
        population=64,
        count=5,
        measure=MeasureSettings(threads=0, timing=Timing(repeat=1, min_repeat_ms=1)),
    )
    return dataclasses.replace(given, **changes)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measured programs of the network's tasks."""
    from tlp_tvm.collection import CollectSettings, collect

    out = tmp_path_factory.mktemp("known")
    how = MeasureSettings(threads=0, timing=Timing(repeat=1, min_repeat_ms=1))
    target = "llvm -mcpu=core-avx2 -num-cores=1"
    collect(CollectSettings(("mlp",), out, target, programs=4, evolved=0.0, measure=how))
    return out


def test_a_killed_run_resumes_with_the_next_task(tmp_path: Path, known: Path) -> None:
    with pytest.raises(Killed):
        choose(settings(tmp_path, known), Dies())
    (first,) = read_choices(tmp_path).content["tasks"]
    counted = Counts()

    found = choose(settings(tmp_path, known), counted)

    assert (counted.there, counted.added) == (1, 1)
    assert found.content["tasks"][0] == first
    assert [len(task.chosen[model]) for task in found.tasks for model in MODELS] == [5] * 4
    assert all(task.best <= task.known < 1 for task in found.tasks)
    assert [(row.model, row.k) for row in found.regrets()] == ROWS
    assert all(1 <= row.mean <= row.worst for row in found.regrets())
    assert read_choices(tmp_path).content == found.content


def test_the_best_that_is_known_is_timed_anew(known: Path) -> None:
    from tlp_tvm.framework import framework_named

    framework = framework_named("ansor")
    task = framework.plan(["mlp"], framework.target("llvm -mcpu=core-avx2", here=True), str, None)[0]
    batch = read_records(known)
    own = [i for i, each in enumerate(batch.task_ids) if batch.tasks[each].workload_key == task.workload_key]

    found = framework.source(task, 0).fastest([batch], 2)

    fastest = sorted(own, key=lambda i: batch.latencies[i])[:2]
    assert [each.hash for each in found] == batch.sequence_hashes[fastest].tolist()


def test_another_run_in_the_folder_is_refused(tmp_path: Path, known: Path) -> None:
    with pytest.raises(Killed):
        choose(settings(tmp_path, known), Dies())

    with pytest.raises(ComparisonError, match=r"choice\.json: expected a run with seed 1, found 0; choose"):
        choose(settings(tmp_path, known, seed=1))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("{", "expected a run of `evaluate --choice`, found"), ('{"format": 1}', "of version 1, found")],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / RESULTS).write_text(text)
    with pytest.raises(ComparisonError, match=sentence):
        read_choices(tmp_path)


def test_the_command_prints_a_row_for_each_model_and_number(
    tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quick(asked: ChoiceSettings, observer: ChoiceObserver) -> Any:
        (data,) = asked.known
        small = settings(asked.out, data, models=asked.models, networks=asked.networks, target=asked.target)
        return choose(small, observer)

    monkeypatch.setattr(model_choices, "choose", quick)
    target = "llvm -keys=cpu -mcpu=nehalem -num-cores=1"
    command = ["evaluate", *MODELS, str(known), "--choice", "mlp", "--target", target, "--out", str(tmp_path)]

    printed = succeed(*command)
    content = json.loads(succeed(*command, "--json"))

    assert "geometric mean" in printed
    assert "minutes" in printed
    assert [(row["model"], row["k"]) for row in content["regrets"]] == [
        (m, k) for m in MODELS for k in (1, 5)
    ]
    assert len(content["tasks"]) == 2
    assert content["target"] == target


def test_it_needs_a_model_and_a_folder(known: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    no_folder = refused("evaluate", "epyc", known, "--choice", "mlp", code=2)
    no_model = refused("evaluate", known, "--choice", "mlp", "--out", tmp_path, code=2)

    assert "expected --out, a folder to resume from, found none" in no_folder
    assert "expected MODEL... and then DATASET, found one name" in no_model
    assert not tmp_path.exists()
