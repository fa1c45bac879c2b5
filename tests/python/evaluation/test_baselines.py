"""Baselines on the project's own measurements: they learn from training tasks alone, the same for a seed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from measured import part_of_epyc
from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.baselines import BASELINES, BaselineSettings, make_baselines
from tlp_tvm.evaluation.baselines.training_tables import hold_out, labelled
from tlp_tvm.evaluation.baselines.xgboost_sequence import OBJECTIVES, XGBoostSequence
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Ranker
from tlp_tvm.evaluation.side_by_side import RANDOM, compare_rankers
from tlp_tvm.files import user_cache
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metrics.ranked_groups import MEAN_OVER_TASKS

LAYOUT = FeatureLayout.preset("ansor")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return part_of_epyc(tmp_path_factory.mktemp("epyc"))


@pytest.fixture(scope="module")
def corpus(source: Path) -> Corpus:
    return Corpus(source, LAYOUT)


def settings(cache: Path, rounds: int = 10) -> BaselineSettings:
    return BaselineSettings(rounds=rounds, epochs=1, cache=cache, device="cpu")


def ranker(name: str, cache: Path, rounds: int = 10) -> Ranker:
    [made] = make_baselines([name, RANDOM, name], settings(cache, rounds))
    assert made.name == name
    return made


@pytest.mark.parametrize("name", ["xgboost-sequence", "published-tlp", "mtl-tlp"])
def test_a_seed_says_it_all(name: str, corpus: Corpus, tmp_path: Path) -> None:
    def scores(seed: int, cache: str) -> list[float]:
        made = ranker(name, tmp_path / cache, rounds=20)
        assert made.fit(corpus, seed, lambda words: None) == {}
        return list(made.scores(corpus.judged_programs, 0))

    first = scores(1, "a")
    assert np.isfinite(first).all()
    assert len(set(first)) > len(first) // 2
    assert first == scores(1, "b")
    assert first != scores(2, "a")


@pytest.mark.parametrize("name", ["xgboost-sequence", "published-tlp", "tlp"])
def test_judged_labels_are_not_looked_at(name: str, source: Path, tmp_path: Path) -> None:
    made, scores = ranker(name, tmp_path), []
    for labels in ("right", "wrong"):
        corpus = Corpus(source, LAYOUT)
        for measured in (corpus.in_layout(FeatureLayout.preset("paper-cpu")), corpus.whole):
            latencies = measured.latencies
            if labels == "wrong":
                latencies[corpus.judged_programs] = 1.0 / latencies[corpus.judged_programs]
        made.fit(corpus, 0, lambda words: None)
        scores.append(made.scores(corpus.judged_programs, 0))
    np.testing.assert_array_equal(*scores)


def test_xgboost_learns_from_what_it_has_seen(corpus: Corpus, tmp_path: Path) -> None:
    made = XGBoostSequence(BaselineSettings(rounds=30, cache=tmp_path))
    comparison = compare_rankers(corpus, [made], seeds=(0, 1), seen=(0, 16), ks=(1, 5))
    assert set(made.objectives.values()) <= set(OBJECTIVES)
    assert list(made.objectives) == ["epyc-avx2-1c"]
    assert comparison.notes[made.name][0].startswith("objective, chosen on training tasks held out: r")
    pairs = {
        row.seen: row.pairwise_accuracy.mean
        for row in comparison.rows
        if (row.ranker, row.network) == (made.name, MEAN_OVER_TASKS)
    }
    assert pairs[16] > max(pairs[0], 0.5)
    again = compare_rankers(corpus, [made], seeds=(0, 1), seen=(0, 16), ks=(1, 5))
    assert again.rows == comparison.rows


def test_what_was_seen_leaves_the_model_as_it_was(corpus: Corpus, tmp_path: Path) -> None:
    made = ranker("xgboost-sequence", tmp_path)
    made.fit(corpus, 0, lambda words: None)
    before = made.scores(corpus.judged_programs, 0)
    after = made.scores_after(corpus.judged_programs[:8], corpus.judged_programs[8:24], 0)
    assert not np.array_equal(after, before[8:24])
    np.testing.assert_array_equal(made.scores(corpus.judged_programs, 0), before)


def test_the_published_model_does_not_learn_and_is_trained_once(corpus: Corpus, tmp_path: Path) -> None:
    made, told = ranker("published-tlp", tmp_path), list[str]()
    made.fit(corpus, 0, told.append)
    assert told == ["published-tlp, seed 0: epyc-avx2-1c: epoch 1 of 1"]
    scores = made.scores(corpus.judged_programs, 0)
    np.testing.assert_array_equal(
        made.scores_after(corpus.judged_programs[:8], corpus.judged_programs[8:], 0), scores[8:]
    )
    [state] = tmp_path.glob("published-tlp/*/training.safetensors")
    written = state.stat().st_mtime_ns
    other = ranker("published-tlp", tmp_path)
    other.fit(corpus, 0, told.append)
    np.testing.assert_array_equal(other.scores(corpus.judged_programs, 0), scores)
    assert state.stat().st_mtime_ns == written
    assert made.notes == ["as published, it does not learn in a search"]


def test_our_model_learns_from_what_it_has_seen(corpus: Corpus, tmp_path: Path) -> None:
    made = ranker("tlp", tmp_path)
    made.fit(corpus, 0, lambda words: None)
    before = made.scores(corpus.judged_programs, 0)
    after = made.scores_after(corpus.judged_programs[:8], corpus.judged_programs[8:24], 0)
    assert not np.array_equal(after, before[8:24])
    np.testing.assert_array_equal(
        made.scores_after(corpus.judged_programs[:2], corpus.judged_programs[8:24], 0), before[8:24]
    )
    assert made.notes == []


def test_a_baseline_of_one_member_has_one(corpus: Corpus, tmp_path: Path) -> None:
    for name, members in (("tlp", 2), ("tlp-one", 1)):
        made = ranker(name, tmp_path)
        made.fit(corpus, 0, lambda words: None)
        [state] = tmp_path.glob(f"{name}/*/training.safetensors")
        found = {key.partition("members.")[2].split(".")[0] for key in load_file(state) if "members." in key}
        assert found == {str(member) for member in range(members)}


def test_tasks_held_out_are_training_tasks(corpus: Corpus) -> None:
    fitted, held_out = hold_out(corpus, 0)
    assert sorted(fitted + held_out) == corpus.training_tasks
    assert len(held_out) == 1


def test_programs_to_learn_from_are_thinned_out(corpus: Corpus) -> None:
    everything = labelled(corpus, corpus.training_tasks, 0, 10**6, 0)
    assert len(everything) == 5 * 24
    part = labelled(corpus, corpus.training_tasks, 0, 60, 0)
    assert 30 < len(part) < 90
    assert len(set(corpus.whole.task_index[part])) == 5


def test_refusals(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetError) as error:
        make_baselines(["random", "gnn"], settings(tmp_path))
    assert str(error.value) == f'`baselines`: expected some of {", ".join(BASELINES)}, found "gnn"'
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(DatasetError, match="^`baselines`: expected the package xgboost, found .*pip install"):
        ranker("xgboost-sequence", tmp_path).fit(Corpus(source, LAYOUT), 0, print)


def test_every_baseline_has_its_name(tmp_path: Path) -> None:
    made = make_baselines(list(BASELINES), settings(tmp_path))
    assert [RANDOM, *(each.name for each in made)] == list(BASELINES)


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == BaselineSettings().cache == tmp_path / "tlp-tvm"
