"""Without measuring, the model alone chooses a program of each task, for targets that may be elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from exported import SHAPE, dense_net, export_traced, image
from scorers import LinearScorer
from tlp_tvm.ansor import load_tuned
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.targets import runs_here
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search import tuner
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.ansor.search.zero_shot import MADE_UP_COST, can_be_compiled, choose_program, record_of
from tlp_tvm.errors import TuningError
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_settings import TuneSettings

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


def settings(out: Path, network: Path, target: str = TARGET, **changes: Any) -> TuneSettings:
    values = {"model": LinearScorer(), "trials": 0, "population": 32, "turns": 1}
    return TuneSettings(**{"network": str(network), "out": out, "target": target, **values, **changes})


def test_the_network_is_built_from_what_the_model_chose(tmp_path: Path) -> None:
    network = export_traced(tmp_path / "net.pt", network=dense_net())
    result = tune_network(settings(tmp_path / "run", network))

    records = list(load_tvm().auto_scheduler.RecordReader(str(result.best)))
    assert len(records) == len(result.tasks) >= 2
    assert {float(ran.costs[0].value) for _, ran in records} == {MADE_UP_COST}
    assert {int(ran.timestamp) for _, ran in records} == {0}
    assert all(task.chosen and task.best == np.inf and task.trials == 0 for task in result.tasks)
    assert result.log.read_text() == ""
    assert (result.trials, result.curve) == (0, None)
    report = json.loads(result.report.read_text())
    assert (report["estimate"], report["curve"]) == (None, None)
    assert result.end_to_end is not None
    assert result.end_to_end.difference < 1e-4
    expected = dense_net()(torch.from_numpy(image())).detach()
    np.testing.assert_allclose(load_tuned(tmp_path / "run")(input=image())[0], expected, atol=1e-4)

    result.log.write_text("a record\n")
    with pytest.raises(TuningError) as error:
        tune_network(settings(tmp_path / "run", network))
    assert str(error.value) == (
        f"{result.log}: expected no measured programs for `trials` 0, found some, "
        "which `trials` 0 would ignore; choose another `out`"
    )


def test_a_stopped_choice_goes_on_and_another_model_chooses_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = export_traced(tmp_path / "net.pt", network=dense_net())
    out = tmp_path / "run"
    elsewhere = "llvm -mtriple=aarch64-linux-gnu -num-cores=4"
    first = tune_network(settings(out, network, elsewhere))
    chosen = first.best.read_text().splitlines(keepends=True)
    first.best.write_text(chosen[0])  # what a kill after the first task leaves
    calls: list[int] = []
    right = tuner.choose_programs

    def spy(tasks: Any, cost_model: Any, log: Path, known: dict[str, str], **how: Any) -> dict[str, str]:
        calls.append(len(known))
        return right(tasks, cost_model, log, known, **how)

    monkeypatch.setattr(tuner, "choose_programs", spy)
    again = tune_network(settings(out, network, elsewhere))
    tune_network(settings(out, network, elsewhere, seed=1))
    assert calls == [1, 0]
    assert len(again.best.read_text().splitlines()) == len(chosen)


def test_a_target_elsewhere_gets_its_library_and_no_timing(tmp_path: Path) -> None:
    network = export_traced(tmp_path / "net.pt", with_shapes=False, network=dense_net())
    arm = "llvm -mtriple=aarch64-linux-gnu -num-cores=4"
    result = tune_network(settings(tmp_path / "run", network, arm, shapes={"input": SHAPE}))
    assert result.end_to_end is None
    assert result.library == tmp_path / "run" / "tuned.tar"
    assert json.loads((tmp_path / "run" / "tuned.json").read_text())["target"].startswith("llvm")
    with pytest.raises(TuningError, match="expected a machine that runs programs for llvm "):
        load_tuned(tmp_path / "run")


def test_a_program_for_a_gpu_keeps_to_its_limits() -> None:
    task = operator_task("softmax", "cuda -arch=sm_70")
    state = choose_program(task, LinearScorerModel(), 16, seed=3)
    assert state is not None
    assert can_be_compiled(task, state)
    inputs, ran = load_tvm().auto_scheduler.measure_record.load_record_from_string(record_of(task, state))
    assert inputs.task.workload_key == task.workload_key
    assert float(ran.costs[0].value) == MADE_UP_COST


def test_programs_beyond_a_gpu_are_told() -> None:
    auto_scheduler = load_tvm().auto_scheduler
    task = operator_task("reduction", "cuda -arch=sm_70")
    small = auto_scheduler.HardwareParams(-1, 16, 64, 64, 2**31 - 1, 2, 1, 32)
    tiny = auto_scheduler.SearchTask(
        compute_dag=task.compute_dag,
        workload_key=task.workload_key,
        target=task.target,
        hardware_params=small,
    )
    states = sample_states(task, 8)
    assert sum(can_be_compiled(task, state) for state in states) > 0
    assert not any(can_be_compiled(tiny, state) for state in states)
    assert not any(can_be_compiled(tiny, state, lowered=True) for state in states)


def test_what_was_lowered_for_a_cpu_is_not_lowered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    task = operator_task("softmax", "llvm -mcpu=core-avx2 -num-cores=2")
    (state,) = sample_states(task, 1)[:1]

    def lower(*_: object) -> None:
        raise ValueError("refused")

    monkeypatch.setattr(load_tvm(), "lower", lower)
    assert can_be_compiled(task, state, lowered=True)
    assert not can_be_compiled(task, state)


@pytest.mark.parametrize(
    ("target", "flags", "here"),
    [
        ("llvm -mcpu=core-avx2", "flags : avx avx2 fma f16c bmi2", True),
        ("llvm -mcpu=skylake-avx512", "flags : avx avx2 fma f16c bmi2", False),
        ("llvm -mtriple=aarch64-linux-gnu", "", False),
        ("llvm -mtriple=x86_64-linux-gnu", "", True),
    ],
)
def test_what_runs_here(tmp_path: Path, target: str, flags: str, here: bool) -> None:
    (tmp_path / "cpuinfo").write_text(flags)
    assert runs_here(load_tvm().target.Target(target), tmp_path / "cpuinfo") == here


def LinearScorerModel() -> Any:  # noqa: N802 - reads like the class
    from tlp_tvm.ansor.search.cost_model import TLPCostModel

    return TLPCostModel(LinearScorer(), "mean")
