"""A model as the search sees it."""

from __future__ import annotations

import numpy as np
import pytest

from programs import LAYOUT, TARGETS, random_embeddings, tiny_config
from tlp_tvm.errors import ModelFileError
from tlp_tvm.machine.cpu import Cpu
from tlp_tvm.model import scoring
from tlp_tvm.model.scoring import ScoringModel


@pytest.fixture
def model() -> ScoringModel:
    return ScoringModel("tiny", *tiny_config())


def test_scores_are_one_float_a_program(model: ScoringModel) -> None:
    x = random_embeddings()
    for platform in (*model.platforms, "mean"):
        scores = model.score(x, platform)
        assert scores.shape == (len(x),)
        assert scores.dtype == np.float32
    assert model.score(x[:0], "mean").shape == (0,)


def test_platforms_have_heads_of_their_own(model: ScoringModel) -> None:
    x = random_embeddings()
    alpha, beta = model.score(x, "alpha"), model.score(x, "beta")
    assert np.abs(alpha - beta).max() > 1e-4
    np.testing.assert_allclose(model.score(x, "mean"), (alpha + beta) / 2, atol=1e-6)


def test_whoever_would_rather_have_some_head_than_none_gets_the_mean(model: ScoringModel) -> None:
    assert scoring.platform_or_mean(model, TARGETS["alpha"]) == "alpha"
    assert scoring.platform_or_mean(model, "cuda") == "mean"


@pytest.mark.parametrize("faithful", [False, True])
def test_batches_and_order_do_not_matter(faithful: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScoringModel("tiny", *tiny_config(faithful=faithful))
    x = random_embeddings(count=50)
    whole = model.score(x, "alpha")
    shuffled = np.random.default_rng(0).permutation(50)
    np.testing.assert_allclose(model.score(x[shuffled], "alpha"), whole[shuffled], rtol=0, atol=1e-6)
    monkeypatch.setattr(scoring, "BATCH", 7)
    np.testing.assert_allclose(model.score(x, "alpha"), whole, rtol=0, atol=1e-6)


def test_a_platform_is_found_by_its_target(model: ScoringModel) -> None:
    assert model.platform_of(TARGETS["alpha"]) == "alpha"
    assert model.platform_of("llvm -mcpu=core-avx2 -num-cores=1") == "alpha"
    assert model.platform_of("llvm -mcpu=core-avx2 -num-cores=8") == "alpha"
    assert model.platform_of("llvm -mcpu=nehalem") == "beta"


def test_of_two_platforms_of_a_target_it_is_this_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    target = "llvm -mcpu=core-avx2 -num-cores=2"
    monkeypatch.setattr("programs.TARGETS", {"zen4-avx2-2t": target, "zen5-avx2-2t": target})
    model = ScoringModel("tiny", *tiny_config())

    for generation in ("zen4", "zen5"):
        monkeypatch.setattr(scoring, "this_cpu", lambda: Cpu("one", "core-avx2", 2, generation))  # noqa: B023
        assert model.platform_of(target) == f"{generation}-avx2-2t"

    more_cores = "llvm -mcpu=core-avx2 -num-cores=8"
    assert model.platform_of(more_cores) == "zen5-avx2-2t"

    monkeypatch.setattr(scoring, "this_cpu", lambda: Cpu("one", "core-avx2", 2, "zen3"))
    assert model.platform_of(target) == "zen5-avx2-2t"  # unlike all others, it has these vectors and threads
    assert scoring.platform_or_mean(model, more_cores) == "mean"


def test_a_head_of_other_vectors_or_of_no_processor_is_not_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    target = "llvm -mcpu=core-avx2 -num-cores=2"
    monkeypatch.setattr("programs.TARGETS", {"lab": target, "zen4-avx2-2t": target, "older": target})
    model = ScoringModel("tiny", *tiny_config())
    monkeypatch.setattr(scoring, "this_cpu", lambda: Cpu("one", "core-avx2", 2, "zen3"))
    assert model.platform_of(target) == "zen4-avx2-2t"

    monkeypatch.setattr("programs.TARGETS", {"lab": target, "older": target})
    assert scoring.platform_or_mean(ScoringModel("tiny", *tiny_config()), target) == "mean"


@pytest.mark.parametrize("target", ["llvm", "cuda", "llvm -mcpu=znver2"])
def test_a_target_of_no_platform_is_refused(model: ScoringModel, target: str) -> None:
    with pytest.raises(ModelFileError) as error:
        model.platform_of(target)
    assert str(error.value) == (
        f"model tiny: expected a target that names one of its platforms, alpha ({TARGETS['alpha']}); beta "
        f'({TARGETS["beta"]}), found "{target}"; choose a platform by name, or "mean" for the mean of all'
    )


def test_what_it_cannot_score_is_refused(model: ScoringModel) -> None:
    with pytest.raises(ModelFileError) as error:
        model.score(random_embeddings(), "gamma")
    assert str(error.value) == 'model tiny: expected one of its platforms alpha, beta, found "gamma"'
    with pytest.raises(ModelFileError) as error:
        model.score(random_embeddings())
    assert str(error.value) == (
        'model tiny: expected a choice among its platforms alpha, beta, or "mean" for the mean of all, '
        "found none; give `platform`"
    )
    with pytest.raises(ModelFileError) as error:
        model.score(random_embeddings()[:, :5], "mean")
    assert str(error.value) == (
        'model tiny: expected embeddings of the layout "ansor" (N, 8, 72), found (20, 5, 72)'
    )


def test_one_head_scores_as_it_does_among_all() -> None:
    config, network = tiny_config(LAYOUT, heads=2, members=2)
    model = ScoringModel("tiny", config, network.eval())
    x = np.random.default_rng(3).random((9, LAYOUT.length, LAYOUT.width), np.float32)

    together = model.score_all(x)

    for column, platform in enumerate(model.platforms):
        np.testing.assert_array_equal(model.score(x, platform), together[:, column])
