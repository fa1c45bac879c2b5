"""A whole network tuned in TVM's loop, really compiled and timed, but small."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import resource
import shutil
import signal
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_tunings import NETWORK, TASKS, Told, settings

from programs import tiny_config
from scorers import LinearScorer
from tlp_tvm.ansor.from_torch.misread import MISREAD
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.inside import SLOWEST
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.errors import ModelFileError, NetworkError, TuningError
from tlp_tvm.folder_lock import held
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.measuring.stopping import StopOnInterrupt, Stopped
from tlp_tvm.model.checkpoint import save_checkpoint
from tlp_tvm.pages.past_run import read_run
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_settings import TuneResult, TuneSettings, measures_per_round

TRIALS, MORE = 8, 5


@pytest.fixture(scope="module")
def told() -> Told:
    return Told()


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, told: Told) -> TuneResult:
    return tune_network(settings(tmp_path_factory.mktemp("runs") / "mlp"), told)


def refused(changed: TuneSettings, kind: type[Exception] = TuningError) -> str:
    with pytest.raises(kind) as error:
        tune_network(changed)
    return str(error.value)


def test_every_task_is_searched_and_every_program_is_in_tvms_log(result: TuneResult, told: Told) -> None:
    records = list(load_tvm().auto_scheduler.RecordReader(str(result.log)))
    assert result.trials == len(records) == TRIALS
    assert result.reused == 0
    assert len(result.tasks) == TASKS
    assert {str(inputs.task.workload_key) for inputs, _ in records} == {t.workload_key for t in result.tasks}
    assert sum(task.trials for task in result.tasks) == TRIALS
    assert result.failures == {}
    assert {int(inputs.task.hardware_params.num_cores) for inputs, _ in records} == {2}
    best = {t.workload_key: t.best for t in result.tasks}
    for key, latency in best.items():
        costs = [r.costs[0].value for i, r in records if i.task.workload_key == key]
        assert latency == pytest.approx(min(costs))
    assert result.estimate == pytest.approx(sum(t.best * t.weight for t in result.tasks))


def test_the_observer_is_told(result: TuneResult, told: Told) -> None:
    assert told.steps[0] == "splitting the network into tasks"
    assert told.steps[-1] == "timing the network, untuned and tuned in turns"
    assert told.plan == (TASKS, TRIALS, 0)
    assert len(told.rounds) == TRIALS
    assert [trials for trials, _ in told.programs] == list(range(1, TRIALS + 1))
    assert told.programs[-1][1] == pytest.approx(result.estimate, rel=1e-5)  # records have six digits


def test_the_model_scores_with_the_head_of_the_target(result: TuneResult, tmp_path: Path) -> None:
    assert result.model == "linear"
    assert result.platform == "avx2"


def test_the_network_is_timed_before_and_after_and_computes_the_same(result: TuneResult) -> None:
    ended = result.end_to_end
    assert len(ended.untuned) == len(ended.tuned) == 3
    assert ended.untuned_latency == np.median(ended.untuned) > 0
    assert ended.speedup == ended.untuned_latency / ended.tuned_latency
    assert ended.difference < 1e-4


def test_every_operator_is_told_beside_its_label(result: TuneResult) -> None:
    best = {task.workload_key: task for task in result.tasks}
    tuned = {each.task: each for each in result.operators if each.label is not None}
    assert tuned.keys() == {key for key, task in best.items() if task.chosen}
    for key, each in tuned.items():
        assert best[key].best <= each.label <= SLOWEST * best[key].best
        assert each.count == best[key].weight
        assert each.inside > 0
    assert result.peak > 0
    operations = sum(task.flops * task.weight for task in result.tasks)
    assert result.at_peak == pytest.approx(operations / result.peak)
    report = json.loads(result.report.read_text())
    assert sum(report["explained"].values()) == pytest.approx(result.end_to_end.tuned_latency)


def test_the_run_is_written_down(result: TuneResult) -> None:
    report = json.loads(result.report.read_text())
    assert report["format"] == "tlp-tvm-run"
    assert report["network"] == NETWORK
    assert report["seed"] == 0
    assert {"tlp_tvm", "tvm", "python"} <= report["versions"].keys()
    assert len(report["tasks"]) == TASKS
    assert report["end_to_end"]["speedup"] == result.end_to_end.speedup
    assert result.curve.read_bytes().startswith(b"\x89PNG")
    names = sorted(path.name for path in result.log.parent.iterdir())
    assert names == [
        *("best.json", "curve.png", "log.json", "run.json", "tuned.json", "tuned.so", "tvm.log"),
    ]


def test_a_resumed_run_teaches_the_model_what_its_log_holds(
    result: TuneResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill in the middle of a record; an old run's adapted.safetensors is left alone."""
    run = tmp_path / "run"
    shutil.copytree(result.log.parent, run)
    (run / "adapted.safetensors").write_bytes(b"of an older version")
    lines = (run / "log.json").read_text().splitlines(keepends=True)
    (run / "log.json").write_text("".join(lines) + lines[0][:50])

    taught: list[int] = []
    learn = TLPCostModel.learn

    def spy(model: TLPCostModel, key: str, target: str, embeddings: Any, latencies: Any) -> None:
        taught.append(len(latencies))
        learn(model, key, target, embeddings, latencies)

    monkeypatch.setattr(TLPCostModel, "learn", spy)
    tune_network(settings(run, trials=TRIALS + 1))

    assert sum(taught) == TRIALS + 1
    assert (run / "adapted.safetensors").read_bytes() == b"of an older version"


def test_a_full_disk_stops_the_run_with_a_sentence_and_keeps_what_was_whole(tmp_path: Path) -> None:
    """TVM's own writer of records checks nothing."""
    run = tmp_path / "run"
    room, before = 40_000, resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    class Fills(TuneObserver):
        def measured(self, trials: int, estimate: float, failures: Mapping[str, int]) -> None:
            size = (run / "log.json").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))

    try:
        with pytest.raises(TuningError) as error:
            tune_network(settings(run), Fills())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert re.fullmatch(
        rf"{run}/log.json: expected room for one more record, found: (File too large|No space left on "
        "device); make room, and run the same command again: what was measured is kept",
        str(error.value),
    )
    assert (run / "log.json").stat().st_size < room
    assert len(read_records(run / "log.json")) == 1
    assert tune_network(settings(run)).reused == 1


def test_two_tunings_of_one_folder_are_refused_and_the_second_mends_no_log(
    result: TuneResult, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(result.log.parent, run)
    with (run / "log.json").open("ab") as log:
        log.write(b'{"i": [[')  # what the first is writing
    before = (run / "log.json").read_bytes()
    with held(run, TuningError, ""):
        assert "expected nobody else to write there, found process" in refused(settings(run))
        assert (run / "log.json").read_bytes() == before


def test_time_ends_the_measuring_and_what_is_there_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    monkeypatch.setattr(StopOnInterrupt, "time_is_up", property(lambda _: len(told.programs) >= 6))
    ended = tune_network(settings(tmp_path, trials=100_000, minutes=60), told)
    assert 6 <= ended.trials < 40
    assert ended.end_to_end is not None
    monkeypatch.undo()
    assert tune_network(settings(tmp_path / "none", minutes=60, trials=TASKS), Told()).trials == TASKS


def test_the_best_programs_are_a_log_of_tvms(result: TuneResult) -> None:
    records = list(load_tvm().auto_scheduler.RecordReader(str(result.best)))
    taken = {str(inputs.task.workload_key): float(ran.costs[0].value) for inputs, ran in records}
    chosen = {task.workload_key: task.best for task in result.tasks if task.chosen}
    assert taken.keys() == chosen.keys()
    for key, best in chosen.items():
        assert best * 0.999 <= taken[key] <= SLOWEST * best * 1.001


def test_the_same_command_goes_on_and_measures_nothing_twice(result: TuneResult) -> None:
    before = result.log.read_text()
    told = Told()

    changes: dict[str, Any] = {"trials": TRIALS + MORE, "measures_per_round": 2, "choose": "top"}
    more = tune_network(settings(result.log.parent, **changes), told)

    assert told.plan == (TASKS, TRIALS + MORE, TRIALS)
    assert [trials for trials, _ in told.programs] == list(range(TRIALS + 1, TRIALS + MORE + 1))
    assert (more.reused, more.trials) == (TRIALS, TRIALS + MORE)
    assert more.log.read_text().startswith(before)
    batch = read_records(more.log)
    programs = set(zip(batch.task_ids.tolist(), batch.sequence_hashes.tolist(), strict=True))
    assert len(programs) == TRIALS + MORE
    assert more.estimate <= result.estimate


def test_a_run_goes_on_from_another_directory_with_the_model_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, network = tiny_config(FeatureLayout.preset("ansor"))
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    save_checkpoint(tmp_path / "here" / "models" / "tiny", config, network.state_dict())
    out = tmp_path / "run"

    class Impatient(TuneObserver):
        def measured(self, trials: int, estimate: float, failures: Mapping[str, int]) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped):
        tune_network(settings(out, model="models/tiny", trials=TASKS), Impatient())
    content = json.loads((out / "run.json").read_text())
    assert (content["model"], content["model_source"]) == ("tiny", str(tmp_path / "here/models/tiny"))
    assert len(content["planned"]) == TASKS
    assert len(read_run(out).tasks) == TASKS  # what a page shows

    monkeypatch.chdir(tmp_path / "elsewhere")
    assert tune_network(settings(out, model="", trials=TASKS)).model == "tiny"


def test_an_interrupt_keeps_the_log_and_says_how_to_go_on(tmp_path: Path) -> None:
    class Impatient(TuneObserver):
        def measured(self, trials: int, estimate: float, failures: Mapping[str, int]) -> None:
            if trials == 3:
                os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(TuningError) as error:
        tune_network(settings(tmp_path, measures_per_round=2), Impatient())

    log = tmp_path / "log.json"
    words = str(error.value).split(" programs; ")
    assert words[1] == f"{tmp_path} holds them, and the same command resumes the run"
    assert words[0] == f"stopped after 3 of {TRIALS}"
    assert len(log.read_text().splitlines()) == 3
    assert signal.getsignal(signal.SIGINT) is before


def test_calls_of_a_run_add_up_what_they_spent_whatever_the_wall_clock_does(
    tmp_path: Path, shifting_clock: Callable[[], float]
) -> None:
    class Impatient(TuneObserver):
        def measured(self, trials: int, estimate: float, failures: Mapping[str, int]) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped):
        tune_network(settings(tmp_path, trials=TASKS), Impatient())
    first = json.loads((tmp_path / "run.json").read_text())["seconds"]
    assert set(first) == {"tasks", "build", "search", "measure"}
    assert min(first.values()) > 0
    assert sum(first.values()) <= shifting_clock()

    second = tune_network(settings(tmp_path, trials=TASKS)).seconds
    assert all(second[name] > first[name] for name in first)
    assert sum(second.values()) <= shifting_clock()
    assert tune_network(settings(tmp_path, trials=TASKS)).seconds["search"] == second["search"]


def test_a_model_that_fails_is_named(tmp_path: Path) -> None:
    message = refused(settings(tmp_path, model=LinearScorer(spoil=float("nan"))), ModelFileError)
    assert message.startswith("model linear: expected finite scores, found 1 of ")
    assert (tmp_path / "log.json").read_text() == ""


def test_a_network_of_which_nothing_runs_says_why(tmp_path: Path) -> None:
    hopeless = MeasureSettings(timing=Timing(repeat=1, min_repeat_ms=1), build_timeout_s=0, threads=0)
    message = refused(settings(tmp_path, measure=hopeless, trials=TASKS))
    assert message == (
        f"{tmp_path}/log.json: expected programs that run, found none; "
        "most often a program compiles too long: over 0 s"
    )
    assert len((tmp_path / "log.json").read_text().splitlines()) == TASKS


def test_too_few_trials_are_refused(tmp_path: Path) -> None:
    assert refused(settings(tmp_path, trials=TASKS - 1)) == (
        "`trials` 3: expected at least one program for each of the 4 tasks of mlp; "
        "choose `trials` 4 or more, better 64"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "llvm -nothing=1"}, '`target` "llvm -nothing=1": expected a TVM target such as "llvm '),
        ({"target": "llvm -mcpu=z80"}, '`target` "llvm -mcpu=z80": expected a -mcpu that LLVM '),
        ({"target": "nothing"}, '`target` "nothing": expected a TVM target such as "llvm '),
        (
            {"target": "cuda"},
            '`target` "cuda": expected a device of this machine to measure on, found no cuda',
        ),
        ({"warm_start": (Path("none"),)}, "`warm_start` none: expected a record log or the folder of a run"),
        ({"warm_start": (Path("none"),), "trials": 0}, "`warm_start`: expected programs to measure, found "),
        ({"platform": "m1"}, 'model linear: expected one of its platforms avx512, avx2, found "m1"'),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    if changes.get("target") == "cuda" and load_tvm().cuda().exist:
        pytest.skip("this machine has a CUDA device")
    assert refused(settings(tmp_path / "run", **changes)).startswith(message)
    assert not (tmp_path / "run").exists()


def test_a_torchscript_file_that_tvm_gets_wrong_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(MISREAD, "avg_pool2d")
    file = tmp_path / "pool.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated
        torch.jit.trace(torch.nn.AvgPool2d(3, 2, 1, divisor_override=5), torch.randn(1, 4, 9, 9)).save(file)

    with pytest.raises(NetworkError) as refused:
        tune_network(settings(tmp_path / "run", network=str(file)))

    assert re.fullmatch(
        re.escape(f"{file}: expected TVM to give the outputs that PyTorch gives, found a difference of ")
        + r"\S+ of the largest value; please report the network, and tune its ONNX file, or what "
        + "torch.export.save wrote with MetaSchedule",
        str(refused.value),
    )
    assert not (tmp_path / "run" / "log.json").read_text()


def test_an_unknown_network_is_refused_with_the_names(tmp_path: Path) -> None:
    message = refused(settings(tmp_path / "run", network="nonet"), NetworkError)
    assert message.startswith('expected the name of a network, found "nonet"; choose one of resnet_18, ')
    message = refused(settings(tmp_path / "run", network="net.onnx"), NetworkError)
    assert message.startswith("net.onnx: expected a file with a network, found none; ")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("trials", "tasks", "expected"), [(8, 4, 1), (100, 5, 10), (10_000, 5, 16), (5, 5, 1)]
)
def test_rounds_give_every_task_two(trials: int, tasks: int, expected: int) -> None:
    assert measures_per_round(trials, tasks) == expected


def test_settings_are_a_value(tmp_path: Path) -> None:
    first = TuneSettings("mlp", tmp_path)
    assert dataclasses.replace(first, seed=1) != first
