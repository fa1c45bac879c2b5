"""What a search has learned, on disk and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scorers import LinearScorer
from tlp_tvm.adapting.adaptation import Measured, TaskAdapter
from tlp_tvm.adapting.savings import Adapted, load_adapted, save_adapted
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.errors import TuningError
from tlp_tvm.layout import FeatureLayout

TARGET = "llvm -mcpu=core-avx2"


def taught(count: int = 12) -> TLPCostModel:
    model = TLPCostModel(LinearScorer(), online=True)
    rng = np.random.default_rng(0)
    layout = model.model.layout
    for key in ("a", "b"):
        x = np.zeros((count, layout.length, layout.width), np.float32)
        x[:, 0, :5] = rng.normal(size=(count, 5))
        latencies = rng.random(count) + 0.1
        latencies[3] = np.inf
        model.learn(key, TARGET, x, latencies)
    return model


def test_what_was_learned_is_the_same_after_a_file(tmp_path: Path) -> None:
    path = tmp_path / "adapted.safetensors"
    model = taught()
    save_adapted(path, model.adapted())

    fresh = TLPCostModel(LinearScorer(), online=True)
    fresh.adopt(load_adapted(path), TARGET)

    assert path.stat().st_size < 50_000  # not the whole embeddings
    for key in ("a", "b"):
        old, new = model.adapter(key), fresh.adapter(key)
        assert old is not None
        assert new is not None
        assert new.measured.learned == 12
        np.testing.assert_allclose(new.measured.speeds, old.measured.speeds, rtol=1e-12)
        x = old.measured.embeddings
        np.testing.assert_array_equal(new.measured.embeddings, x)
        scores = model.model.score(x)
        np.testing.assert_allclose(new.speeds(x, scores), old.speeds(x, scores), atol=1e-5)


def test_a_model_of_another_layout_refuses_it() -> None:
    other = TLPCostModel(LinearScorer(FeatureLayout.preset("paper-cpu")))
    with pytest.raises(TuningError) as error:
        other.adopt(taught().adapted(), TARGET)
    assert str(error.value) == (
        'model linear: expected what was learned with the layout "paper-cpu" 25 x 22, found "ansor" '
        f"{' x '.join(str(n) for n in taught().adapted().tasks['a'].embeddings.shape[1:])}; "
        "learn again from the log"
    )


def test_damage_is_told_with_its_cure(tmp_path: Path) -> None:
    path = tmp_path / "adapted.safetensors"
    with pytest.raises(TuningError, match=r"expected what a search has learned, found No such file"):
        load_adapted(path)
    save_adapted(path, taught().adapted())
    whole = path.read_bytes()
    for damaged in (b"", b"nothing", whole[:100], whole[:-8], whole.replace(b"values", b"valueX")):
        path.write_bytes(damaged)
        with pytest.raises(TuningError) as error:
            load_adapted(path)
        assert str(error.value).startswith(f"{path}: expected what a search has learned, found ")
        assert str(error.value).endswith("; remove it: the log teaches the same again")
    path.write_bytes(whole.replace(rb"format_version\": 1", rb"format_version\": 9"))
    with pytest.raises(
        TuningError, match=r"expected tlp-tvm-adapted of version 1, found \('tlp-tvm-adapted', 9\)"
    ):
        load_adapted(path)


def test_nothing_learned_is_a_file_too(tmp_path: Path) -> None:
    save_adapted(tmp_path / "empty", Adapted("m", "ansor", {}))
    assert load_adapted(tmp_path / "empty").tasks == {}


def test_an_adapter_goes_on_as_if_it_had_not_stopped() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20, 2, 3)).astype(np.float32)
    scores, latencies = rng.normal(size=20).astype(np.float32), rng.random(20)
    whole = TaskAdapter()
    whole.learn(x, scores, latencies)
    first = TaskAdapter()
    first.learn(x[:10], scores[:10], latencies[:10])
    second = TaskAdapter(first.measured, scores[:10])
    second.learn(x[10:], scores[10:], latencies[10:])
    assert isinstance(second.measured, Measured)
    assert second.measured.learned == 20
    np.testing.assert_allclose(second.speeds(x, scores), whole.speeds(x, scores), atol=1e-5)


def test_what_is_left_to_learn_is_little_near_what_was_measured() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 2, 3)).astype(np.float32)
    scores = rng.normal(size=30).astype(np.float32)
    adapter = TaskAdapter()
    adapter.learn(x[:20], scores[:20], rng.random(20))
    covariance = adapter.covariance(x, scores)
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-5)
    variance = np.diag(covariance)
    assert (variance > 0).all()
    assert variance[:20].max() < 0.2 < variance[20:].min()
