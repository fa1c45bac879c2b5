"""The model in MetaSchedule's own search: it is what the search asks, learns, and finds programs that run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from programs import tiny_config
from sampled import programs
from scorers import LinearScorer
from tlp_tvm.errors import ModelFileError, TuningError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import flags_of
from tlp_tvm.metaschedule.measuring.builder import local_builder
from tlp_tvm.metaschedule.networks.workloads import TARGETS, workload
from tlp_tvm.metaschedule.reading.records import read_tuning_records
from tlp_tvm.metaschedule.reading.traces import extract_traces
from tlp_tvm.metaschedule.search.cost_model import TLPCostModel
from tlp_tvm.metaschedule.search.tvms_search import without_nameless_handlers
from tlp_tvm.model.checkpoint import save_checkpoint

LAYOUT = FeatureLayout.preset("metaschedule")


def scorer(**options: Any) -> LinearScorer:
    return LinearScorer(LAYOUT, **options)


def context(name: str = "matmul", **target: Any) -> Any:
    tvm = load_tvm()
    from tvm.s_tir import meta_schedule as ms

    return ms.TuneContext(
        mod=workload(name), target=tvm.target.Target(TARGETS["llvm"] | target), num_threads=1
    )


def candidates(name: str = "matmul", count: int = 24) -> list[Any]:
    load_tvm()
    from tvm.s_tir.meta_schedule import MeasureCandidate

    return [MeasureCandidate(program, []) for program in programs(name, "llvm")[:count]]


def results(latencies: list[float]) -> list[Any]:
    load_tvm()
    from tvm.s_tir.meta_schedule.runner import RunnerResult

    return [
        RunnerResult(None, "failed") if np.isinf(latency) else RunnerResult([latency, latency], None)
        for latency in latencies
    ]


def test_predictions_are_positive_and_ordered_as_the_scores() -> None:
    asked = scorer()
    found = TLPCostModel(asked, "mean").predict(context(), candidates())  # through TVM, as its search does
    scores = asked.score(extract_traces(programs("matmul", "llvm"), LAYOUT))
    assert found.dtype == np.float64
    assert (found > 0).all()
    assert list(np.argsort(found)) == list(np.argsort(scores))


def test_a_model_of_another_framework_is_refused_by_name(tmp_path: Path) -> None:
    config, network = tiny_config(FeatureLayout.preset("ansor"))
    save_checkpoint(tmp_path / "tiny", config, network.state_dict())
    with pytest.raises(ModelFileError) as error:
        TLPCostModel(tmp_path / "tiny")
    assert str(error.value) == (
        'model tiny: expected a model of metaschedule, found the layout "ansor" of ansor; choose a model '
        "trained on programs of metaschedule"
    )


def test_a_platform_that_the_model_lacks_is_refused() -> None:
    with pytest.raises(TuningError, match='^model linear: expected one of its .* avx2, found "m1"$'):
        TLPCostModel(scorer(), "m1")


@pytest.mark.parametrize(("mcpu", "head"), [("skylake-avx512", "avx512"), ("core-avx2", "avx2")])
def test_the_head_is_that_of_the_target(mcpu: str, head: str) -> None:
    asked = scorer()
    here = context(mcpu=mcpu)
    assert flags_of(here.target) == f"llvm -mcpu={mcpu} -num-cores=2"
    TLPCostModel(asked).predict(here, candidates(count=2))
    assert asked.heads == [head]


def test_a_score_that_is_no_number_is_refused_in_its_own_words() -> None:
    model = TLPCostModel(scorer(spoil=float("nan")), "mean")
    with pytest.raises(ModelFileError, match="^model linear: expected finite scores, found 1 of 24 "):
        model.predict(context(), candidates())
    assert isinstance(model.error, ModelFileError)


def test_online_it_learns_and_what_it_learned_is_saved_and_loaded(tmp_path: Path) -> None:
    asked = scorer()
    frozen, online = TLPCostModel(asked, "mean"), TLPCostModel(asked, "mean", online=True)
    sampled = candidates()
    before = online.predict(context(), sampled)
    # The opposite of what the scores say.
    latencies = [float(score) * 1e-3 for score in before]
    latencies[7] = np.inf
    for model in (frozen, online):
        model.update(context(), sampled[:12], results(latencies[:12]))
        model.update(context(), sampled[12:], results(latencies[12:]))
        model.update(context(), [], [])

    np.testing.assert_array_equal(frozen.predict(context(), sampled), before)
    after = online.predict(context(), sampled)
    measured = np.flatnonzero(np.isfinite(latencies))
    speeds = 1 / np.array(latencies)[measured]
    assert np.corrcoef(np.log(after[measured]), speeds)[0, 1] > 0.8
    others = candidates("softmax")
    np.testing.assert_array_equal(
        online.predict(context("softmax"), others), frozen.predict(context("softmax"), others)
    )

    online.save(str(tmp_path / "learned"))
    again = TLPCostModel(asked, "mean")
    again.load(str(tmp_path / "learned"))
    assert again.online
    np.testing.assert_allclose(again.predict(context(), sampled), after, rtol=1e-3)


def test_measurements_of_another_layout_and_damaged_files_are_refused(tmp_path: Path) -> None:
    model = TLPCostModel(scorer(), "mean", online=True)
    model.update(context(), candidates(count=5), results([1e-3] * 5))
    model.save(str(tmp_path / "learned"))
    shorter = TLPCostModel(LinearScorer(LAYOUT.with_shape(length=30)), "mean")
    with pytest.raises(ModelFileError, match=r'in the layout "metaschedule" \(\w+\) of model linear'):
        shorter.load(str(tmp_path / "learned"))
    data = (tmp_path / "learned").read_bytes()
    for damaged in (b"", b"no", data[: len(data) // 2]):
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(ModelFileError, match="expected measurements that a TLPCostModel saved"):
            model.load(str(tmp_path / "damaged"))


def test_a_matmul_is_tuned_end_to_end(tmp_path: Path) -> None:
    tvm = load_tvm()
    from tvm.s_tir import meta_schedule as ms

    config, network = tiny_config(LAYOUT)
    save_checkpoint(tmp_path / "tiny", config, network.state_dict())
    model = TLPCostModel(tmp_path / "tiny", "mean", device="cpu", online=True)
    target = tvm.target.Target(TARGETS["llvm"])

    with without_nameless_handlers():  # pytest's
        database = ms.tune_tir(
            workload("matmul"),
            target,
            str(tmp_path / "work"),
            max_trials_global=4,
            num_trials_per_iter=4,
            builder=local_builder(max_workers=1, timeout_sec=120.0),
            strategy=ms.search_strategy.EvolutionarySearch(population_size=32, init_min_unmeasured=16),
            cost_model=model,
            num_tuning_cores=1,
            seed=1,
        )

    assert model.error is None
    [adapter] = model._adapters.values()
    assert len(adapter.measured.speeds) == 4
    records = read_tuning_records(tmp_path / "work")
    assert len(records) == 4
    assert np.isfinite(records.latencies).sum() >= 1
    best = ms.tir_integration.compile_tir(database, workload("matmul"), target)
    program = tvm.compile(best.mod, target)
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 128, 128), np.float32)
    arrays = [tvm.runtime.tensor(x) for x in (a, b, np.zeros_like(a))]
    program(*arrays)
    np.testing.assert_allclose(arrays[2].numpy(), a @ b, rtol=1e-4)
