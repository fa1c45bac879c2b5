"""Collecting: every program once, whatever kills it, and the same ones again on another platform."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from places import python_path
from tlp_tvm.adapting.program_source import Program, ProgramSource
from tlp_tvm.ansor.compiling.newer_llvm import newer_llvm
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.collection import CollectObserver, CollectSettings, collect, collecting
from tlp_tvm.collection.folder import CollectionFolder
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.errors import CollectionError, DatasetError, ModelFileError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.machine.cpu import Cpu
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import FAILED_COST, MeasureSettings
from tlp_tvm.measuring.yardstick import WORTH_IT
from tlp_tvm.model.checkpoint import SHIPPED, load_model
from tlp_tvm.model.scoring import MEAN

NETWORK = "mlp"
TASKS = 4
TARGET = "llvm -num-cores=1"
QUICK = MeasureSettings(threads=0, timing=Timing(repeat=2, min_repeat_ms=1))
KILLS = 4
DEADLINE_S = 120


def settings(out: Path, **changes: Any) -> CollectSettings:
    given: dict[str, Any] = {"platform": "here", "programs": 6, "batch": 8, "measure": QUICK, **changes}
    return CollectSettings((NETWORK,), out, TARGET, **given)


def lines_of(folder: Path, platform: str) -> list[str]:
    files = sorted((folder / platform).rglob("*.json"))
    return [line for file in files for line in file.read_text().splitlines(keepends=True)]


def identities(folder: Path, platform: str) -> list[tuple[str, int]]:
    batch = read_records(folder / platform)
    keys = [batch.tasks[i].workload_key for i in batch.task_ids]
    return list(zip(keys, batch.sequence_hashes.tolist(), strict=True))


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("collected") / "data"
    result = collect(settings(out))
    assert (result.tasks, result.programs, result.measured) == (TASKS, 6 * TASKS, 6 * TASKS)
    assert result.finished
    assert result.failures == {}
    return out


def test_a_collection_is_a_dataset_of_distinct_programs(collected: Path) -> None:
    dataset = load_measured(collected, FeatureLayout.preset("ansor"))

    assert len(dataset) == len(set(identities(collected, "here"))) == 6 * TASKS
    assert [platform.name for platform in dataset.platforms] == ["here"]
    assert sorted(task.weights[NETWORK] for task in dataset.tasks) == [1, 1, 1, 1]
    assert (dataset.latencies > 0).all()
    assert (dataset.latencies < 1).all()


def test_records_have_the_spread_of_their_repeats(collected: Path) -> None:
    """Those that are slow for their task have one timing."""
    batch = read_records(collected / "here")

    repeats = batch.cost_offsets[1:] - batch.cost_offsets[:-1]
    assert set(repeats.tolist()) <= {1, QUICK.timing.repeat}
    for task in range(len(batch.tasks)):
        rows = np.flatnonzero(batch.task_ids == task)
        best = rows[np.argmin(batch.latencies[rows])]
        assert repeats[best] == QUICK.timing.repeat
        once = rows[repeats[rows] == 1]
        assert (batch.latencies[once] > WORTH_IT * batch.latencies[best]).all()
    assert (batch.elapsed > 0).all()
    assert (abs(batch.timestamps - time.time()) < 600).all()


def test_more_programs_are_added_to_those_of_before(tmp_path: Path) -> None:
    collect(settings(tmp_path, programs=3, evolved=0.0))
    before = lines_of(tmp_path, "here")

    result = collect(settings(tmp_path, programs=9))

    after = lines_of(tmp_path, "here")
    assert result.measured == 6 * TASKS
    assert len(set(identities(tmp_path, "here"))) == len(after) == 9 * TASKS
    assert set(before) <= set(after)
    assert collect(settings(tmp_path, programs=9)).measured == 0


def test_the_share_that_is_asked_for_is_evolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    takes: list[tuple[int, bool]] = []
    take = ProgramSource.take

    def noted(source: ProgramSource, count: int, *, evolved: bool) -> list[Program]:
        takes.append((count, evolved))
        return take(source, count, evolved=evolved)

    monkeypatch.setattr(ProgramSource, "take", noted)
    collect(settings(tmp_path, programs=7, evolved=0.33))

    assert [sum(count for count, evolved in takes if evolved is kind) for kind in (False, True)] == [
        5 * TASKS,
        2 * TASKS,
    ]
    assert len(set(identities(tmp_path, "here"))) == 7 * TASKS


def test_a_model_leads_the_evolution(collected: Path, tmp_path: Path) -> None:
    """From the first program on; without it the same number of programs is half random, half evolved."""
    model = load_model("epyc-small")
    collect(settings(tmp_path, evolved=1.0, model=model.name))

    def preferred(folder: Path) -> dict[str, float]:
        data = load_measured(folder, model.layout)
        scores = model.score(data.features(), MEAN)
        return {task.workload_key: scores[data.programs_of(i)].mean() for i, task in enumerate(data.tasks)}

    led, unled = preferred(tmp_path), preferred(collected)
    assert led.keys() == unled.keys()
    assert sum(led.values()) > sum(unled.values()) + 0.5 * TASKS
    described = json.loads((tmp_path / "collection.json").read_text())["platforms"]["here"]
    assert described["model"] == model.name


def test_a_model_leads_nothing_where_programs_are_given(collected: Path, tmp_path: Path) -> None:
    with pytest.raises(CollectionError) as error:
        collect(settings(tmp_path, model="epyc", programs_from=collected))
    assert str(error.value) == (
        f"`model` epyc: expected programs to evolve, found those of `programs_from` {collected}; leave out "
        "one of the two, or choose among these programs with `labels`"
    )
    assert not list(tmp_path.iterdir())


def test_a_model_of_another_framework_leads_nothing(tmp_path: Path) -> None:
    with pytest.raises(CollectionError) as error:
        collect(settings(tmp_path, model="epyc-metaschedule"))
    assert str(error.value) == (
        '`model` epyc-metaschedule: expected a model of the layout "ansor" of ansor, found "metaschedule" of '
        "metaschedule; choose another model, or none"
    )
    assert not list(tmp_path.iterdir())


def test_the_same_programs_on_another_platform_line_up(collected: Path, tmp_path: Path) -> None:
    files = sorted((collected / "here").rglob("*.json"))
    for file in files:  # one program of each task is missing there
        copy = tmp_path / file.relative_to(collected)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    source = tmp_path / "here"

    result = collect(settings(tmp_path, platform="there", programs_from=source))

    assert result.finished
    assert sorted(identities(tmp_path, "there")) == sorted(identities(tmp_path, "here"))
    for file in files:
        (tmp_path / file.relative_to(collected)).write_text(file.read_text())
    dataset = load_measured(tmp_path, FeatureLayout.preset("ansor"))
    assert dataset.latencies.shape == (6 * TASKS, 2)
    assert (dataset.latencies[:, 0] > 0).all()
    assert (dataset.latencies[:, 1] > 0).sum() == 5 * TASKS


def test_few_of_the_programs_are_chosen_to_be_measured(collected: Path, tmp_path: Path) -> None:
    """Blocks, so of three of four tasks here; fewer are part of more, so that the command can resume."""
    source = tmp_path / "source"
    shutil.copytree(collected, source)
    shutil.copytree(source / "here", source / "twin")  # the same programs, which count once

    def chosen(out: str, labels: str, model: str = "") -> list[tuple[str, int]]:
        asked = settings(tmp_path / out, platform="there", programs_from=source, labels=labels, model=model)
        assert collect(asked).finished
        return sorted(identities(tmp_path / out, "there"))

    half = chosen("whole", "50%")
    assert len(half) == 3 * TASKS
    assert set(half) < set(identities(collected, "here"))
    assert sorted(Counter(workload for workload, _ in half).values()) == [4, 4, 4]
    assert len(chosen("grown", "4", "x86")) == 4
    assert chosen("grown", "12") == half
    described = json.loads((tmp_path / "grown" / "collection.json").read_text())["platforms"]["there"]
    assert (described["labels"], described["model"]) == ("12", "x86")


def test_a_choice_needs_programs_and_a_number(collected: Path, tmp_path: Path) -> None:
    with pytest.raises(CollectionError) as error:
        collect(settings(tmp_path / "none", labels="7%"))
    assert str(error.value) == (
        "`labels` 7%: expected `programs_from`, a folder with programs to choose from, found none; give it, "
        "or measure new programs with `programs`"
    )
    for labels, sentence in (
        ("some", '`labels`: expected numbers, shares or "all" such as 0,50,7%,all, found "some"'),
        ("50,7%", '`labels`: expected one number or share such as 400 or 7%, found "50,7%"'),
    ):
        with pytest.raises(DatasetError) as wrong:
            collect(settings(tmp_path / "some", labels=labels, programs_from=collected))
        assert str(wrong.value) == sentence
    exported = SHIPPED / "epyc-small" / "model.pt"
    with pytest.raises(ModelFileError) as scores_only:
        collect(settings(tmp_path / "some", labels="7%", programs_from=collected, model=str(exported)))
    assert str(scores_only.value) == (
        "`model` model: expected a shipped model or a checkpoint folder, found an exported file; give the "
        "folder that it was exported from"
    )
    assert not (tmp_path / "some").exists()
    assert not (tmp_path / "none").exists()


def test_killed_at_random_moments_it_loses_nothing_and_measures_nothing_twice(tmp_path: Path) -> None:
    code = (
        "import test_collection as t, pathlib\n"
        f"t.collect(t.settings(pathlib.Path({str(tmp_path)!r}), programs=12, batch=4), t.Says())\n"
    )
    moments = random.Random(7)
    seen: set[str] = set()
    for _ in range(KILLS):
        with _python(code) as process:
            _read_lines(process, moments.randrange(6))
            time.sleep(moments.uniform(0, 0.5))
            process.send_signal(signal.SIGKILL)
        lines = {line for line in lines_of(tmp_path, "here") if line.endswith("\n")}
        assert seen <= lines
        seen = lines
    with _python(code) as process:
        output, _ = process.communicate(timeout=DEADLINE_S)

    assert process.returncode == 0, output
    assert 0 < len(seen) < 12 * TASKS, "the moments missed the measuring"
    assert seen <= set(lines_of(tmp_path, "here"))
    found = identities(tmp_path, "here")
    assert len(set(found)) == len(found) == 12 * TASKS


class Says(CollectObserver):
    """Prints a line when measuring begins, and one for each program."""

    def planned(self, tasks: int, programs: int, known: int) -> None:
        self.measured(known, 0, {})

    def measured(self, programs: int, tasks_done: int, failures: Mapping[str, int]) -> None:
        sys.stdout.write(f"{programs} programs\n")
        sys.stdout.flush()


def _python(code: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": python_path("collection"),
    }
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen([sys.executable, "-c", code], text=True, env=environment, **output)


def _read_lines(process: subprocess.Popen[str], count: int) -> None:
    """Wait until measuring has begun and `count` programs are measured."""
    assert process.stdout is not None
    for line in process.stdout:
        count -= line.endswith(" programs\n")
        if count < 0:
            break


def test_a_program_that_fails_is_recorded_and_a_hopeless_task_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "HOPELESS", 1)
    hopeless = MeasureSettings(threads=0, timing=QUICK.timing, build_timeout_s=0)

    result = collect(settings(tmp_path, programs=40, batch=2, measure=hopeless))

    batch = read_records(tmp_path / "here")
    assert set(batch.errors.tolist()) == {6}
    assert set(batch.cost_values.tolist()) == {FAILED_COST}
    assert set(result.failures) == {"compiles too long: over 0 s"}
    assert result.measured == len(batch) <= 2 * TASKS + 2


def test_a_budget_ends_it_and_the_same_call_goes_on(tmp_path: Path) -> None:
    stopped = collect(settings(tmp_path, budget_s=0.0))
    assert not stopped.finished
    assert stopped.measured == 0

    assert collect(settings(tmp_path)).finished


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"measure": MeasureSettings(threads=2, timing=QUICK.timing)},
            "expected threads 1, as before, found 2",
        ),
        (
            {"platform": "a/b"},
            '`platform` "a/b": expected a name that a folder can have, without / or a leading .',
        ),
    ],
)
def test_another_measuring_under_the_same_label_is_refused(
    collected: Path, changes: dict[str, Any], message: str
) -> None:
    before = lines_of(collected, "here")
    with pytest.raises(CollectionError, match="expected") as error:
        collect(settings(collected, **changes))

    assert message in str(error.value)
    assert lines_of(collected, "here") == before


def test_another_processor_under_the_same_label_is_refused(
    collected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(collected, folder)
    described = json.loads((folder / "collection.json").read_text())["platforms"]["here"]
    monkeypatch.setattr(collecting, "this_cpu", lambda: Cpu("abacus", "", 1, "abacus"))
    with pytest.raises(CollectionError, match=r"expected cpu .*, as before, found abacus; choose another"):
        collect(settings(folder))
    with CollectionFolder(folder, "here") as there:
        there.begin({**described, "cpu": None}, [])  # devices of a fleet, which are not asked


def test_programs_that_are_compiled_otherwise_are_refused(collected: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(collected, folder)
    content = json.loads((folder / "collection.json").read_text())
    described = dict(content["platforms"]["here"])
    assert described["code"] == (newer_llvm(load_tvm()) or "folded")
    del content["platforms"]["here"]["code"]  # as earlier versions wrote it
    (folder / "collection.json").write_text(json.dumps(content))
    with (
        pytest.raises(CollectionError, match=r"expected code plain, as before, found .*; choose"),
        CollectionFolder(folder, "here") as there,
    ):
        there.begin(described, [])


def test_a_record_on_the_wrong_side_of_the_split_is_refused(collected: Path, tmp_path: Path) -> None:
    file = next((collected / "here").rglob("*.json"))
    place = tmp_path / "here" / "test" / file.name
    place.parent.mkdir(parents=True)
    place.write_text(file.read_text())

    with pytest.raises(CollectionError, match="expected records of a train task"):
        collect(settings(tmp_path))


def test_a_full_disk_leaves_the_records_of_before(collected: Path, tmp_path: Path) -> None:
    code = (
        "import resource, sys, pathlib, test_collection as t\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        f"t.collect(t.settings(pathlib.Path({str(tmp_path)!r})))\n"
    )
    with _python(code) as process:
        output, _ = process.communicate(timeout=DEADLINE_S)

    assert process.returncode == 1
    assert "No space left on device" in output
    text = "".join(lines_of(tmp_path, "here"))
    assert text.endswith("\n")
    assert all(json.loads(line) for line in text.splitlines())
    assert collect(settings(tmp_path)).finished
    assert len(set(identities(tmp_path, "here"))) == len(lines_of(tmp_path, "here")) == 6 * TASKS
