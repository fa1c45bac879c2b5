"""The model in TVM's own search: it is what the search asks, and what goes wrong in it reaches the user."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from programs import tiny_config
from scorers import LinearScorer
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.reading.states import extract_states
from tlp_tvm.ansor.search import cost_model
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.errors import ModelFileError, TuningError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import save_checkpoint

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"
POPULATION = 64


@functools.cache
def task() -> Any:
    return operator_task("batch_matmul", TARGET)


@functools.cache
def states() -> list[Any]:
    return sample_states(task(), 40)


def policy(model: TLPCostModel) -> Any:
    params = {"evolutionary_search_population": POPULATION, "sample_init_min_population": 40}
    return load_tvm().auto_scheduler.SketchPolicy(task(), model, params=params, seed=1, verbose=0)


def test_the_search_asks_the_model_and_follows_it() -> None:
    scorer = LinearScorer()
    search = policy(TLPCostModel(scorer))

    initial = search.sample_initial_population()
    asked_for_initial = len(scorer.batches)
    found = search.evolutionary_search(initial, 8)

    assert asked_for_initial >= 1
    assert len(scorer.batches) - asked_for_initial == 5  # the initial population and four generations
    assert sum(scorer.batches[asked_for_initial:]) > 4 * POPULATION * 0.9
    of_initial = scorer.score(extract_states(initial, scorer.layout))
    of_found = scorer.score(extract_states(found, scorer.layout))
    assert list(of_found) == sorted(of_found, reverse=True)
    assert of_found.min() > np.quantile(of_initial, 0.8)
    assert of_found.max() >= of_initial.max()


def test_no_python_object_is_made_for_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    tvm = load_tvm()
    search = policy(TLPCostModel(LinearScorer()))
    search.sample_initial_population()  # the self-check of the native reader is over now

    def refuse(array: Any, index: Any) -> Any:
        raise AssertionError("an element of an Array was looked at")

    monkeypatch.setattr(tvm.ir.Array, "__getitem__", refuse)
    assert len(search.sample_initial_population()) >= 40


def test_predictions_are_positive_and_ordered_as_the_scores() -> None:
    scorer = LinearScorer()
    model = TLPCostModel(scorer)

    predictions = model.predict(task(), states())

    scores = scorer.score(extract_states(states(), scorer.layout))
    assert predictions.dtype == np.float32
    assert np.isfinite(predictions).all()
    assert (predictions > 0).all()
    assert list(np.argsort(predictions)) == list(np.argsort(scores))


def test_extreme_scores_stay_finite() -> None:
    for extreme in (1e30, -1e30):
        prediction = TLPCostModel(LinearScorer(spoil=extreme)).predict(task(), states())[-1]
        assert np.isfinite(prediction)
        assert prediction > 0


def test_memory_is_bounded_and_a_score_does_not_depend_on_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = LinearScorer()
    model = TLPCostModel(scorer)
    array = load_tvm().runtime.convert(states())
    whole = model.predict(task(), array)
    scorer.batches.clear()

    monkeypatch.setattr(cost_model, "BATCH", 7)
    parts = model.predict(task(), array)

    assert max(scorer.batches) == 7
    assert sum(scorer.batches) == len(states())
    np.testing.assert_allclose(parts, whole, rtol=1e-5)
    np.testing.assert_allclose(model.predict(task(), states()[3:4]), whole[3:4], rtol=1e-5)


def test_no_states_get_no_scores() -> None:
    assert TLPCostModel(LinearScorer()).predict(task(), []).shape == (0,)


def test_stages_are_scored_in_tvms_packed_form_without_a_breakdown() -> None:
    model = TLPCostModel(LinearScorer())
    packed = model.predict_stages(task(), states())
    np.testing.assert_array_equal(packed[: len(states())], model.predict(task(), states()))
    np.testing.assert_array_equal(packed[len(states()) :], np.zeros(len(states())))


@pytest.mark.parametrize("spoil", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_ends_the_search_in_its_own_words(spoil: float) -> None:
    model = TLPCostModel(LinearScorer(spoil=spoil))
    with pytest.raises(ModelFileError) as error:
        policy(model).sample_initial_population()
    assert str(error.value).startswith("model linear: expected finite scores, found 1 of ")
    assert str(error.value).endswith(" that are not; train or export the model again")
    assert model.error is not None
    assert str(model.error) == str(error.value)


def test_an_interrupt_inside_ends_the_search_too(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = LinearScorer()
    model = TLPCostModel(scorer)

    def interrupt(*_arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(scorer, "score", interrupt)
    with pytest.raises(TuningError, match="^the search was interrupted$"):
        policy(model).sample_initial_population()
    assert isinstance(model.error, KeyboardInterrupt)


def test_the_first_error_is_the_one_that_is_kept() -> None:
    scorer = LinearScorer(spoil=float("nan"))
    model = TLPCostModel(scorer)
    for _ in range(2):
        with pytest.raises(ModelFileError):
            model.predict(task(), states())
        first = model.error
        scorer.spoil = float("inf")
    assert model.error is first


@pytest.mark.parametrize(
    ("platform", "target", "head"),
    [
        (None, TARGET, "avx2"),
        ("avx512", TARGET, "avx512"),
        ("mean", "llvm -mcpu=nehalem", "mean"),
    ],
)
def test_the_head_is_the_chosen_one_or_that_of_the_target(
    platform: str | None, target: str, head: str
) -> None:
    scorer = LinearScorer()
    other = operator_task("softmax", target)
    TLPCostModel(scorer, platform).predict(other, sample_states(other, 1)[:1])
    assert scorer.heads == [head]


def test_a_target_that_names_no_head_is_refused() -> None:
    other = operator_task("softmax", "llvm -mcpu=nehalem")
    with pytest.raises(ModelFileError, match="no platform of llvm"):
        TLPCostModel(LinearScorer()).scores(other, sample_states(other, 1)[:1])


def test_a_platform_that_the_model_lacks_is_refused() -> None:
    with pytest.raises(TuningError) as error:
        TLPCostModel(LinearScorer(), "m1")
    assert str(error.value) == 'model linear: expected one of its platforms avx512, avx2, found "m1"'


def test_a_model_of_another_framework_is_refused_by_name() -> None:
    with pytest.raises(ModelFileError) as error:
        TLPCostModel(LinearScorer(FeatureLayout.preset("metaschedule")))
    assert str(error.value) == (
        'model linear: expected a model of ansor, found the layout "metaschedule" of metaschedule; choose a '
        "model trained on programs of ansor"
    )


def measurements(model: TLPCostModel, latencies: list[float]) -> tuple[list[Any], list[Any]]:
    """TVM's measurements of the first states; infinity is a failure."""
    auto_scheduler = load_tvm().auto_scheduler
    inputs = [auto_scheduler.MeasureInput(task(), state) for state in states()[: len(latencies)]]
    results = [
        auto_scheduler.MeasureResult([1e10], 4, "", 1.0, 1)
        if np.isinf(latency)
        else auto_scheduler.MeasureResult([latency, latency], 0, "", 1.0, 1)
        for latency in latencies
    ]
    return inputs, results


def test_online_it_learns_from_the_measurements_of_a_round() -> None:
    scorer = LinearScorer()
    frozen, online = TLPCostModel(scorer), TLPCostModel(scorer, online=True)
    before = online.predict(task(), states())
    # The opposite of what the scores say.
    latencies = [float(score) * 1e-3 for score in np.exp(online.scores(task(), states()[:20]))]
    failed = int(np.argsort(latencies)[10])  # of middling speed, had it run
    latencies[failed] = np.inf
    inputs, results = measurements(online, latencies)

    for model in (frozen, online):
        model.update(inputs[:10], results[:10])
        model.update(inputs[10:], results[10:])

    np.testing.assert_array_equal(frozen.predict(task(), states()), before)
    after = online.predict(task(), states()[:20])
    measured = [i for i in range(20) if i != failed]
    speeds = 1 / np.array(latencies)[measured]
    assert np.corrcoef(np.log(after[measured]), np.log(speeds))[0, 1] > 0.8
    assert np.corrcoef(np.log(before[measured]), np.log(speeds))[0, 1] < -0.99
    assert after[failed] < np.median(after)
    assert 0.5 < after.max() < 2  # relative to the fastest measured program
    other = operator_task("softmax", TARGET)
    others = sample_states(other, 4)
    np.testing.assert_array_equal(online.predict(other, others), frozen.predict(other, others))


def test_tvm_hands_over_the_measurements() -> None:
    model = TLPCostModel(LinearScorer(), online=True)
    inputs, results = measurements(model, [1e-3] * 5)
    load_tvm().auto_scheduler._ffi_api.CostModelUpdate(model, inputs, results)
    assert model._adapters[str(task().workload_key)].ready


def test_no_measurements_teach_nothing() -> None:
    model = TLPCostModel(LinearScorer(), online=True)
    model.update([], [])
    assert model._adapters == {}


def test_a_trained_model_is_loaded_by_its_folder(tmp_path: Any) -> None:
    config, network = tiny_config(FeatureLayout.preset("ansor"))
    save_checkpoint(tmp_path / "tiny", config, network.state_dict())

    model = TLPCostModel(tmp_path / "tiny")

    array = load_tvm().runtime.convert(states())
    embeddings = extract_states(array, model.model.layout)
    scores = model.model.score(embeddings, model.platform_for(TARGET))
    np.testing.assert_allclose(model.predict(task(), array), np.exp(scores), rtol=1e-5)


def test_the_shipped_model_scores_a_program_alone_as_among_a_thousand() -> None:
    model = TLPCostModel("epyc", device="cpu")
    conv2d = operator_task("conv2d", TARGET)
    thousand = sample_states(conv2d, 1000)[:1000]
    lengths = extract_states(thousand, model.model.layout).any(-1).sum(-1)
    assert len(set(lengths.tolist())) > 3  # of different lengths, which are padded to the longest

    together = model.scores(conv2d, thousand)

    for i in [*range(0, 1000, 200), int(lengths.argmin()), int(lengths.argmax())]:
        np.testing.assert_allclose(model.scores(conv2d, thousand[i : i + 1]), together[i : i + 1], atol=1e-5)
    np.testing.assert_allclose(model.scores(conv2d, thousand[::-1])[::-1], together, atol=1e-5)
