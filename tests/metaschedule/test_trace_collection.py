"""Collecting MetaSchedule's programs, and what datasets, models and TVM make of the records."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from collected import TARGET, TASKS, hashes_of, lines_of, settings
from compiled_graphs import TORCHS_OWN
from tlp_tvm.adapting.program_source import prior_of
from tlp_tvm.cli.train import train
from tlp_tvm.collection import CollectObserver, collect, collecting
from tlp_tvm.collection.packing import pack
from tlp_tvm.dataset import open_dataset
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.errors import CollectionError, DatasetError, RecordError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.measuring.pool import FAILED_COST
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.measuring.pools import TracePool
from tlp_tvm.metaschedule.measuring.work import Serialized
from tlp_tvm.metaschedule.reading.records import read_batch
from tlp_tvm.metaschedule.reading.traces import extract_traces
from tlp_tvm.metaschedule.reading.workload_key import workload_key
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.scoring import MEAN
from tlp_tvm.records.source import workload_lines

LAYOUT = FeatureLayout.preset("metaschedule")
ANSORS = Path(__file__).parents[2] / "datasets" / "epyc-wide"


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("collected") / "data"
    result = collect(settings(out))
    assert (result.tasks, result.programs, result.measured) == (TASKS, 4 * TASKS, 4 * TASKS)
    assert result.finished
    assert result.failures == {}
    return out


def test_a_collection_is_a_dataset_of_distinct_programs(collected: Path) -> None:
    dataset = load_measured(collected, LAYOUT)

    assert len(dataset) == len(set(hashes_of(collected))) == 4 * TASKS
    assert [(p.name, p.target) for p in dataset.platforms] == [("here", "llvm -num-cores=1")]
    assert [task.weights for task in dataset.tasks] == [{"mlp": 1}] * TASKS
    assert (dataset.latencies > 0).all()
    assert (dataset.latencies < 1).all()


def test_tvm_opens_the_records_and_embeds_them_as_they_were_read(collected: Path) -> None:
    load_tvm()
    from tvm.s_tir import Schedule
    from tvm.s_tir import meta_schedule as ms

    dataset = load_measured(collected, LAYOUT)
    for file in sorted((collected / "here").rglob("*.json")):
        database = ms.database.JSONDatabase(str(collected / "database_workload.json"), str(file))
        records = list(database.get_all_tuning_records())
        key = workload_key(records[0].workload.mod)
        task = [task.workload_key for task in dataset.tasks].index(key)
        programs = []
        for record in records:
            programs.append(Schedule(record.workload.mod))
            record.trace.apply_to_schedule(programs[-1], remove_postproc=False)

        ours = dataset.features(dataset.programs_of(task))
        theirs = extract_traces(programs, LAYOUT)
        assert sorted(map(bytes, theirs)) == sorted(map(bytes, ours))
        assert sorted(np.mean([float(s) for s in r.run_secs]) for r in records) == pytest.approx(
            sorted(dataset.latencies[dataset.programs_of(task), 0])
        )


def test_more_programs_are_added_and_bred_and_none_is_measured_twice(collected: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(collected, tmp_path / "data"))
    before = lines_of(out)

    result = collect(settings(out, programs=6, evolved=0.3))

    assert result.measured == 2 * TASKS
    assert set(before) <= set(lines_of(out))
    assert len(set(hashes_of(out))) == len(lines_of(out)) == 6 * TASKS


def test_a_model_is_asked_of_the_platform_by_its_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target is a dictionary in this TVM, and flags in models: by another name it is asked of all."""
    asked = []

    def noted(model: Any, target: str) -> Any:
        asked.append(target)
        return prior_of(model, target)

    monkeypatch.setattr(collecting, "prior_of", noted)
    collect(settings(tmp_path, model="epyc-metaschedule", budget_s=0.0))
    known = prior_of(load_model("x86-metaschedule"), "llvm -mcpu=core-avx2 -num-cores=2")

    assert asked == [TARGET]
    assert known.platform == "zen3-avx2-2t"


def test_a_model_leads_the_evolution(collected: Path, tmp_path: Path) -> None:
    """From the first program on, where the others are random."""
    model = load_model("epyc-metaschedule")
    collect(settings(tmp_path, evolved=1.0, model=model.name))

    def preferred(folder: Path) -> float:
        data = load_measured(folder, model.layout)
        scores = model.score(data.features(), MEAN)
        return float(np.mean([scores[data.programs_of(i)].mean() for i in range(len(data.tasks))]))

    assert preferred(tmp_path) > preferred(collected) + 0.5


def test_the_same_programs_on_another_platform_line_up(collected: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(collected, tmp_path / "data"))

    result = collect(settings(out, platform="there", programs_from=out / "here"))

    assert result.finished
    assert sorted(hashes_of(out, "there")) == sorted(hashes_of(out, "here"))
    assert load_measured(out, LAYOUT).latencies.shape == (4 * TASKS, 2)
    assert len((out / "database_workload.json").read_text().splitlines()) == TASKS


class _Kills(CollectObserver):
    def measured(self, programs: int, _tasks_done: int, _failures: Any) -> None:
        if programs == 6:
            os.kill(os.getpid(), signal.SIGKILL)


def killed(out: str) -> None:
    """Collect, and die by kill -9 in the middle; for another process to call."""
    collect(settings(Path(out)), _Kills())


def test_killed_it_goes_on_with_what_is_on_the_disk(tmp_path: Path) -> None:
    code = f"import test_trace_collection as t; t.killed({str(tmp_path)!r})"
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    before = lines_of(tmp_path)
    assert len(before) == 6
    file = next((tmp_path / "here").rglob("*.json"))
    file.write_text(file.read_text() + '[0, [[[["GetSBlock"')  # as a write that was cut short leaves it

    result = collect(settings(tmp_path))

    assert result.measured == 4 * TASKS - 6
    assert before == [line for line in lines_of(tmp_path) if line in before]
    assert len(set(hashes_of(tmp_path))) == len(lines_of(tmp_path)) == 4 * TASKS


def test_a_child_that_ends_costs_one_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serialized: Callable[..., Serialized] = TracePool._serialized
    sent: list[Any] = []

    def broken(pool: TracePool, program: Any) -> Serialized:
        sent.append(program)
        found = serialized(pool, program)
        return found if len(sent) != 3 else Serialized("{}", found.target, found.arguments)

    monkeypatch.setattr(TracePool, "_serialized", broken)
    result = collect(settings(tmp_path))

    assert (result.measured, sum(result.failures.values())) == (4 * TASKS, 1)
    costs = [json.loads(line)[1][1] for line in lines_of(tmp_path)]
    assert costs.count([FAILED_COST]) == 1


@pytest.mark.filterwarnings(TORCHS_OWN)
def test_ids_that_a_network_looks_up_are_valid(tmp_path: Path) -> None:
    network = torch.nn.Sequential(torch.nn.Embedding(30_000, 16), torch.nn.Linear(16, 8)).eval()
    torch.export.save(
        torch.export.export(network, (torch.zeros(2, 64, dtype=torch.int64),)), tmp_path / "net.pt2"
    )
    result = collect(replace(settings(tmp_path / "data", programs=2), networks=(str(tmp_path / "net.pt2"),)))
    described = json.loads((tmp_path / "data" / "tasks.json").read_text())
    assert any("take" in task["desc"] for task in described)
    assert (result.failures, result.measured > 0) == ({}, True)


def test_a_hopeless_task_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "HOPELESS", 1)
    monkeypatch.setattr(TracePool, "_serialized", lambda *_: Serialized("{}", '{"kind":"llvm"}', ()))
    result = collect(settings(tmp_path, programs=40, batch=2))
    assert result.measured <= 2 * TASKS + 2
    assert np.isinf(load_measured(tmp_path, LAYOUT).latencies).all()


def test_a_budget_ends_it(tmp_path: Path) -> None:
    stopped = collect(settings(tmp_path, budget_s=0.0))
    assert (stopped.finished, stopped.measured) == (False, 0)


def test_a_folder_of_another_framework_is_refused(collected: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(collected, tmp_path / "data"))
    content = json.loads((out / "collection.json").read_text())
    del content["platforms"]["here"]["framework"]  # as all collections before were Ansor's
    (out / "collection.json").write_text(json.dumps(content))

    with pytest.raises(CollectionError, match="expected programs of ansor, as those of here are, found meta"):
        collect(settings(out, platform="there"))


def test_a_built_dataset_is_what_was_collected_and_says_its_framework(
    collected: Path, tmp_path: Path
) -> None:
    records = load_measured(collected, LAYOUT)
    assert build_dataset([collected], tmp_path / "built").framework == "metaschedule"
    assert open_dataset(tmp_path / "built").manifest.framework == "metaschedule"
    for stream in (False, True):
        built = load_measured(tmp_path / "built", LAYOUT, stream=stream)
        assert np.array_equal(built.latencies, records.latencies)
        assert np.array_equal(built.features(), records.features())


def test_frameworks_are_not_mixed(collected: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"records of one framework, found .* of ansor and .* of meta"):
        build_dataset([collected, ANSORS], tmp_path / "built")
    build_dataset([collected], tmp_path / "built")
    for source in (collected, tmp_path / "built"):
        with pytest.raises(DatasetError, match='expected a layout of metaschedule, .* found "ansor" of'):
            load_measured(source, FeatureLayout.preset("ansor"))


def test_records_without_their_workloads_are_refused(collected: Path, tmp_path: Path) -> None:
    shutil.copytree(collected / "here", tmp_path / "here")
    with pytest.raises(DatasetError, match=r"expected database_workload\.json beside it or in a"):
        load_measured(tmp_path / "here", LAYOUT)
    (tmp_path / "database_workload.json").write_text("")
    with pytest.raises(DatasetError, match=r"\.json:1: expected one of the 0 workloads of .*, found number"):
        load_measured(tmp_path / "here", LAYOUT)


def test_packed_it_reads_as_before_and_is_gone_on_with(collected: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(collected, folder)
    table = folder / "database_workload.json"
    lines = table.read_text().splitlines()
    before = load_measured(collected, LAYOUT)

    pack(folder)

    assert not table.exists()
    assert workload_lines(table) == lines
    packed = load_measured(folder, LAYOUT)
    np.testing.assert_array_equal(packed.latencies, before.latencies)
    assert [task.workload_key for task in packed.tasks] == [task.workload_key for task in before.tasks]
    assert collect(settings(folder)).measured == 0
    assert not table.exists()
    assert workload_lines(table) == lines
    records = next((folder / "here").rglob("*.json.gz"))
    whole = records.read_bytes()
    records.write_bytes(whole[:20] + bytes([whole[20] ^ 255]) + whole[21:])
    for read in (lambda: read_batch([records]), lambda: load_measured(folder, LAYOUT)):
        with pytest.raises(
            RecordError, match=r"json\.gz: expected a whole gzip file, found .*fetch or write"
        ):
            read()
    records.write_bytes(whole)
    table.with_name(f"{table.name}.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(DatasetError, match="expected a whole gzip file, found "):
        load_measured(folder, LAYOUT)


def test_a_model_is_trained_on_it_and_says_its_framework(collected: Path, tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(train)
    options = ["--epochs", "2", "--hidden", "16", "--members", "1", "--hold-out", "2"]
    finished = CliRunner().invoke(app, [str(collected), "--out", str(tmp_path / "model"), *options])

    assert finished.exit_code == 0, finished.output
    card = json.loads((tmp_path / "model" / "config.json").read_text())
    assert card["layout"]["framework"] == card["data"]["framework"] == "metaschedule"
    assert "search `metaschedule`" in (tmp_path / "model" / "CARD.md").read_text()
