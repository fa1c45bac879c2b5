"""Tuning a network with MetaSchedule, resumed, and the example for PyTorch users."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from collected import QUICK, TARGET
from tlp_tvm.adapting.search_scores import SearchScores
from tlp_tvm.errors import NetworkError, TuningError
from tlp_tvm.framework import framework_named
from tlp_tvm.metaschedule.from_torch.misread import KNOWN_BY_OTHERS
from tlp_tvm.metaschedule.loading.targets import target_of
from tlp_tvm.metaschedule.networks.builtin import network_from, tasks_of
from tlp_tvm.metaschedule.networks.library import load_tuned
from tlp_tvm.metaschedule.reading.workload_key import workload_key
from tlp_tvm.metaschedule.search.tuner import CHOICES
from tlp_tvm.pages import report_page
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.network.tuned_library import line_that_runs, read_description, write_description
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_settings import TuneResult, TuneSettings

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_to_tvm.py"


def tuned(out: Path, trials: int, **changes: Any) -> TuneResult:
    given: dict[str, Any] = {
        "network": "mlp", "out": out, "model": "random", "target": TARGET, "measures_per_round": 4,
        "measure": QUICK, "turns": 2, **changes,
    }  # fmt: skip
    return tune_network(TuneSettings(trials=trials, framework="metaschedule", **given), TuneObserver())


def test_a_tuning_is_gone_on_with_and_changes_no_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = tuned(tmp_path, 8)
    assert "executable.cc" not in capfd.readouterr().err  # TVM remarks on each array that it writes
    lines = (tmp_path / "database_tuning_record.json").read_text().splitlines()
    second = tuned(tmp_path, 16)

    assert 8 <= first.trials < second.trials
    assert (tmp_path / "database_tuning_record.json").read_text().splitlines()[: len(lines)] == lines
    assert len(second.tasks) == 4
    assert any(np.isfinite(task.best) for task in second.tasks)
    assert sum(task.trials for task in second.tasks) == second.trials
    assert second.reused == first.trials
    assert second.end_to_end is not None
    assert second.end_to_end.difference < 1e-4
    assert json.loads((tmp_path / "run.json").read_text())["trials"] == second.trials
    assert second.curve is not None
    assert second.curve.exists()
    with pytest.raises(TuningError, match='expected a run of network "dqn", found one of "mlp"; choose ano'):
        tuned(tmp_path, 16, network="dqn")

    a_run_says_all_that_its_page_shows(tmp_path, second)
    a_fresh_process_runs_the_library(tmp_path)


def test_a_resumed_run_teaches_the_model_what_its_database_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tuned(tmp_path, 8, model="x86-metaschedule")
    taught: list[int] = []
    learn = SearchScores.learn

    def spy(model: SearchScores, key: str, target: str, embeddings: Any, latencies: Any) -> None:
        taught.append(len(latencies))
        learn(model, key, target, embeddings, latencies)

    monkeypatch.setattr(SearchScores, "learn", spy)
    second = tuned(tmp_path, 9, model="x86-metaschedule")

    assert second.trials > first.trials
    assert sum(taught) == second.trials


def test_the_model_chooses_for_tasks_that_no_time_was_left_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tlp_tvm.metaschedule.search.network_search.spend", first_alone)
    found = tuned(tmp_path, 8, model="x86-metaschedule")
    assert sorted(task.trials > 0 for task in found.tasks) == [False] * 3 + [True]
    assert all(task.chosen for task in found.tasks)
    assert len(list((tmp_path / CHOICES).glob("*.json"))) == 3
    assert found.end_to_end is not None
    assert found.end_to_end.difference < 1e-4
    a_fresh_process_runs_the_library(tmp_path)


def first_alone(searches: Any, _weights: Any, trials: int, _per_round: int, begin: Any, *_: Any) -> None:
    begin(0)
    searches[0].one_round(trials)


def test_without_measuring_the_model_chooses_and_a_choice_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tuned(tmp_path, 0, model="x86-metaschedule")
    assert (first.trials, [task.chosen for task in first.tasks]) == (0, [True] * 4)
    assert first.end_to_end is not None
    assert first.end_to_end.difference < 1e-4
    assert not first.kept_untuned
    a_fresh_process_runs_the_library(tmp_path)

    def never(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("tlp_tvm.metaschedule.search.zero_shot.choose_program", never)
    assert tuned(tmp_path, 0, model="x86-metaschedule").tasks == first.tasks
    kept = sorted((tmp_path / CHOICES).glob("*.json"))
    kept[0].write_text(kept[0].read_text()[:20])
    with pytest.raises(AssertionError):  # half a choice is made anew
        tuned(tmp_path, 0, model="x86-metaschedule")
    with pytest.raises(TuningError, match="expected a model that knows programs, found random; choose a shi"):
        tuned(tmp_path / "other", 0)


def a_run_says_all_that_its_page_shows(folder: Path, result: TuneResult) -> None:
    page = report_page(folder)

    assert page.count("<svg") >= 3
    for task in result.tasks:
        assert task.workload_key in page
    assert f"database_tuning_record.json, {result.trials} programs" in page
    with (folder / "database_tuning_record.json").open("a") as log:
        log.write("[0, [")
    assert "The last line of the log is incomplete" in report_page(folder)


def a_fresh_process_runs_the_library(folder: Path) -> None:
    line = line_that_runs(folder)
    inputs = json.loads((folder / "tuned.json").read_text())["inputs"]
    (name,) = inputs
    code = f"import numpy as np; array = np.ones({inputs[name]['shape']}, 'f4'); {line}; print(len(outputs))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
    assert "executable.cc" not in done.stderr
    with pytest.raises(TuningError, match="expected a network tuned with ansor, found one of metaschedule"):
        read_description(folder, "ansor")


def test_a_library_that_does_not_load_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tuned.so").write_bytes(b"nothing")
    write_description(tmp_path / "tuned.so", "metaschedule", "mlp", TARGET, {}, [])
    with pytest.raises(TuningError, match=r"tuned.so: expected a library for this machine, found: .+; tune"):
        load_tuned(tmp_path)


@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch warns of itself
def test_a_network_that_tvm_takes_for_another_one_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(KNOWN_BY_OTHERS, "avg_pool2d")
    pool = torch.nn.AvgPool2d(3, 2, 1, divisor_override=5)
    file = tmp_path / "pool.pt2"
    torch.export.save(torch.export.export(pool, (torch.randn(1, 4, 9, 9),)), file)
    with pytest.raises(NetworkError) as refused:
        tuned(tmp_path / "run", 8, network=str(file))
    assert re.fullmatch(
        re.escape(f"{file}: expected TVM to give the outputs that PyTorch gives, found a difference of ")
        + r"\S+ of the largest value; please report the network, "
        + "and tune its TorchScript or ONNX file for Ansor",
        str(refused.value),
    )
    assert not (tmp_path / "run" / "database_tuning_record.json").read_text()


def test_a_target_and_a_network_must_be_known() -> None:
    with pytest.raises(TuningError, match='expected a -mcpu that LLVM .* knows, found "abacus"'):
        target_of("llvm -mcpu=abacus")
    with pytest.raises(TuningError, match='expected flags such as -num-cores=2, found "fast"'):
        target_of("llvm fast")
    with pytest.raises(NetworkError, match="expected a network that MetaSchedule's side has"):
        network_from("inception_v3")


def test_tasks_are_the_same_with_and_without_parameters() -> None:
    from tvm.relax.transform import BindParams

    module, parameters = network_from("bert_tiny-32")
    target = target_of(TARGET)
    keys = [
        {workload_key(task.dispatched[0]) for task in tasks_of(each, target)}
        for each in (module, BindParams("main", parameters)(module))
    ]
    assert keys[0] == keys[1]


@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch warns of itself
def test_the_example_for_pytorch_computes_the_same(tmp_path: Path) -> None:
    assert runpy.run_path(str(EXAMPLE))["main"]("random", 8, tmp_path) < 1e-5


def test_the_commands_need_no_tvm_but_this_one(tmp_path: Path) -> None:
    quick = ["--framework", "metaschedule", "--target", TARGET, "--trials", "4", "--json", "--out"]
    tune = ["tune", "mlp", "--measures-per-round", "2", *quick, str(tmp_path / "run")]
    compare = [
        "compare",
        "mlp",
        "--models",
        "random:2:16",
        "--tasks",
        "1",
        *quick,
        str(tmp_path / "compared"),
    ]
    main = [sys.executable, "-c", "from tlp_tvm.cli.app import main; main()"]
    tuned, compared = (
        json.loads(subprocess.run([*main, *command], capture_output=True, check=True).stdout.splitlines()[-1])
        for command in (tune, compare)
    )

    assert (tuned["trials"], tuned["network"], tuned["model"]) == (
        4,
        "mlp",
        framework_named("metaschedule").default_model,
    )
    assert compared["contenders"] == ["random:2:16"]
    for folder in ("run", "compared"):
        subprocess.run([*main, "report", str(tmp_path / folder)], capture_output=True, check=True)
        assert (tmp_path / folder / "report.html").exists()
