"""Traces bred natively: TVM replays them, and they are to the model what TVM's own are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scorers import LinearScorer
from tlp_tvm import _core
from tlp_tvm.adapting.search_scores import SearchScores
from tlp_tvm.breeding.evolution import evolve
from tlp_tvm.breeding.herd_scores import embedded, scores_by
from tlp_tvm.errors import RecordError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.breeding.trace_stock import TraceStock
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.workloads import TARGETS, WORKLOADS, workload
from tlp_tvm.metaschedule.reading.traces import extract_traces, texts_of
from tlp_tvm.metaschedule.search.cost_model import TLPCostModel
from tlp_tvm.metaschedule.search.trace_search import TraceSearch
from tlp_tvm.metaschedule.search.tvms_sample import drawn

LAYOUT = FeatureLayout.preset("metaschedule")
CHILDREN = 200


def task(name: str, target: str = "llvm") -> Any:
    tvm = load_tvm()
    module = tvm.IRModule({"main": workload(name)})
    made = {"module": module, "target": tvm.target.Target(TARGETS[target]), "id": name}
    return SimpleNamespace(workload_key=name, flop=1e6, **made)


def bred(stock: TraceStock, count: int, threads: int = 2, seed: int = 3) -> _core.Herd:
    herd, _ = stock.stock.breed(
        stock.sample,
        np.ones(len(stock.sample)),
        stock.plan,
        count=count,
        seed=seed,
        known=stock.sample.hashes,
        gpu=None,
        threads=threads,
    )
    return herd


@pytest.mark.parametrize("name", WORKLOADS)
def test_children_replay_and_are_encoded_as_tvms_schedules_are(name: str) -> None:
    stock = TraceStock(task(name), 0)
    herd = bred(stock, CHILDREN)
    assert len(herd) > 10
    made = stock.replayed(herd, range(len(herd)), len(herd), np.empty(0, np.uint64))
    refused = dict(stock.replayer.counts.failed)
    refused.pop("DisallowDynamicLoop refused it", None)  # which TVM finds in its own programs too
    assert not refused
    np.testing.assert_array_equal(embedded(made.herd, LAYOUT), extract_traces(made.programs, LAYOUT))
    same = made.herd.hashes == herd.take(np.array(made.places)).hashes
    if not any(step[0] == "SampleComputeLocation" for step in herd.steps(0)):
        assert same.all()
    assert same.mean() > 0.7
    assert len(np.unique(made.herd.hashes)) == len(made.herd)


def test_a_gpus_traces_breed_too_and_what_cannot_run_is_counted() -> None:
    stock = TraceStock(task("matmul", "cuda"), 0)
    herd = bred(stock, 60)
    made = stock.replayer.programs(herd, range(len(herd)), len(herd))
    counts = stock.replayer.counts
    assert made
    assert counts.replayed + sum(counts.failed.values()) == len(herd)
    theirs = extract_traces([schedule for _, schedule in made], LAYOUT)
    places = np.array([place for place, _ in made])
    np.testing.assert_array_equal(embedded(herd.take(places), LAYOUT), theirs)


def test_threads_make_no_difference_and_no_child_is_there_twice() -> None:
    stock = TraceStock(task("conv2d"), 0)
    one, two = bred(stock, 500, threads=1), bred(stock, 500, threads=2)
    np.testing.assert_array_equal(one.hashes, two.hashes)
    assert len(np.unique(one.hashes)) == len(one)
    assert not np.isin(one.hashes, stock.sample.hashes).any()
    assert not np.array_equal(one.hashes, bred(stock, 500, seed=4).hashes)


def test_a_record_of_a_program_is_the_program() -> None:
    stock = TraceStock(task("matmul"), 0)
    schedules = drawn(stock.context, 8)
    again = stock.add_texts(texts_of(schedules))
    np.testing.assert_array_equal(stock.add(schedules).hashes, again.hashes)
    np.testing.assert_array_equal(embedded(again, LAYOUT), extract_traces(schedules, LAYOUT))


def test_a_trace_that_does_not_replay_is_counted_and_another_taken() -> None:
    stock = TraceStock(task("matmul"), 0)
    other = TraceStock(task("softmax"), 0)
    strange = stock.add_texts([other.sample.text(0)])  # of another task
    herd = stock.stock.joined([strange, stock.sample])
    made = stock.replayer.programs(herd, range(len(herd)), 2)
    assert [place for place, _ in made] == [1, 2]
    assert sum(stock.replayer.counts.failed.values()) == 1


def test_several_threads_replay_what_one_does() -> None:
    made = []
    for threads in (1, 3):
        stock = TraceStock(task("matmul"), 0, threads=threads)
        other = TraceStock(task("softmax"), 0)
        herd = stock.stock.joined([stock.add_texts([other.sample.text(0)]), bred(stock, 60)])
        found = stock.replayer.programs(herd, range(len(herd)), 40)
        made.append(([i for i, _ in found], texts_of([each for _, each in found]), stock.replayer.counts))
    assert made[0] == made[1]
    assert len(made[0][0]) == 40


def test_programs_of_another_framework_are_refused() -> None:
    with pytest.raises(ValueError, match='framework: expected ansor or metaschedule, found "relay"'):
        _core.Stock("relay")
    block = _core.read_traces(b"[[], []]\n", "<programs>", 1, "trace", False)
    with pytest.raises(ValueError, match="expected those of the stock's framework, found another's"):
        _core.Stock("ansor").add_traces(block)


def test_what_no_search_drew_is_refused() -> None:
    text = (
        '[[["GetSBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1"]], '
        '["SamplePerfectTile", ["l1"], [2, 64], ["v2", "v3"]]], [[2, [0, 4]]]]'
    )
    with pytest.raises(
        RecordError, match=r"program 0: instruction 2 \(SamplePerfectTile\): expected factors"
    ):
        TraceStock(task("matmul"), 0).add_texts([text])


def test_a_search_measures_nothing_twice_and_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []
    texts: set[str] = set()
    taught: list[int] = []

    def measure(schedules: list[Any]) -> list[float]:
        measured.append(len(schedules))
        texts.update(texts_of(schedules))
        return [float("inf"), *(1e-3 * (1 + i) for i in range(len(schedules) - 1))]

    learn = SearchScores.learn

    def noted(model: Any, key: str, target: str, embeddings: Any, latencies: Any) -> None:
        taught.append(len(latencies))
        learn(model, key, target, embeddings, latencies)

    monkeypatch.setattr(SearchScores, "learn", noted)
    model = TLPCostModel(LinearScorer(LAYOUT), "mean", online=True)
    search = TraceSearch(task("matmul"), model, measure, population=64, seed=1)
    assert [search.one_round(count) for count in (4, 8, 8)] == [4, 8, 8]
    assert measured == taught == [4, 8, 8]
    assert len(texts) == search.measured == search.newly == 20
    assert search.best == 1e-3
    assert 0 < search.guess < 1


def test_evolution_finds_what_is_asked_for() -> None:
    """Programs whose innermost tiles are long, which a random sample has few of."""
    stock = TraceStock(task("matmul"), 0)

    def score(embeddings: Any) -> Any:
        return embeddings.reshape(len(embeddings), -1).astype(np.float32) @ weights

    weights = np.random.default_rng(0).normal(size=LAYOUT.length * LAYOUT.width).astype(np.float32)
    scores = scores_by(LAYOUT, score)
    found = evolve(stock, stock.sample, scores, population=512, count=8, seed=1, generations=4)
    assert found.scores[0] > scores(stock.sample).max()
    assert (np.diff(found.scores) <= 0).all()
