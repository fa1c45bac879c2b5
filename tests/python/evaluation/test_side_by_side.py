"""Rankers beside each other: the same programs for all, those seen apart, and nothing left out in silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from programs import LAYOUT, tiny_config, write_dataset
from tlp_tvm.adapting.adaptation import TaskAdapter
from tlp_tvm.dataset.ranking import near_training, ranking_rows
from tlp_tvm.errors import DatasetError, ModelFileError
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import ModelRanker, Programs, Tell, labels_of
from tlp_tvm.evaluation.ranking_plot import draw_rankers
from tlp_tvm.evaluation.side_by_side import RANDOM, ComparedRow, compare_rankers
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metrics.ranked_groups import MEAN_OVER_TASKS
from tlp_tvm.model.scoring import ScoringModel


class Told:
    """A ranker that writes down what it is asked; perfect, or the opposite, or without some tasks."""

    notes: list[str] = []  # noqa: RUF012

    def __init__(
        self, name: str, sign: float = 1.0, *, is_fixed: bool = True, missing: tuple[int, ...] = ()
    ) -> None:
        self.name, self.sign, self.is_fixed, self.missing = name, sign, is_fixed, missing
        self.fits: list[int] = []
        self.shown: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []

    def fit(self, corpus: Corpus, seed: int, tell: Tell) -> dict[int, str]:
        self.corpus = corpus
        self.fits.append(seed)
        return dict.fromkeys(self.missing, "it was not built")

    def scores(self, programs: Programs, column: int) -> NDArray[np.float64]:
        assert not set(self.corpus.whole.task_index[programs]) & set(self.missing)
        return -self.sign * self.corpus.whole.latencies[programs, column]

    def scores_after(self, seen: Programs, rest: Programs, column: int) -> NDArray[np.float64]:
        self.shown.append((column, tuple(seen.tolist()), tuple(rest.tolist())))
        return self.scores(rest, column)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(write_dataset(tmp_path), LAYOUT)


def row_of(
    rows: tuple[ComparedRow, ...], ranker: str, seen: int = 0, network: str = MEAN_OVER_TASKS
) -> ComparedRow:
    [row] = [r for r in rows if (r.ranker, r.seen, r.network, r.platform) == (ranker, seen, network, "alpha")]
    return row


def test_the_test_split_is_judged(corpus: Corpus) -> None:
    assert corpus.split == "test"
    assert [task.split for task in corpus.judged.tasks] == ["test"] * 2
    assert corpus.training_tasks == [2, 3, 4, 5]
    np.testing.assert_array_equal(corpus.whole.latencies[corpus.judged_programs], corpus.judged.latencies)
    paper = corpus.in_layout(FeatureLayout.preset("paper-cpu"))
    np.testing.assert_array_equal(paper.latencies, corpus.whole.latencies)
    assert corpus.embeddings(paper.layout, corpus.judged_programs[:3]).shape == (3, 25, 22)


def test_files_that_change_meanwhile_are_refused(corpus: Corpus) -> None:
    corpus.whole = replace(corpus.whole, digest="0" * 64)
    with pytest.raises(DatasetError, match="^dataset: expected the files that were read before, digest 0000"):
        corpus.in_layout(FeatureLayout.preset("paper-cpu"))


def test_rankers_are_fitted_with_each_seed_unless_they_are_fixed(corpus: Corpus) -> None:
    fixed, learning = Told("fixed"), Told("learning", is_fixed=False)
    compare_rankers(corpus, [fixed, learning], seeds=(3, 4, 5))
    assert fixed.fits == [3]
    assert learning.fits == [3, 4, 5]


def test_rows_are_those_of_one_ranker_alone(corpus: Corpus) -> None:
    comparison = compare_rankers(corpus, [Told("best"), Told("worst", -1.0)], ks=(1, 5))
    near = near_training(corpus.whole)
    rows = ranking_rows(corpus.judged, corpus.judged.latencies, ks=(1, 5), near=near)
    alone = {(r.platform, r.network): r for r in rows}
    for row in comparison.rows:
        expected = alone[row.platform, row.network]
        if row.ranker == "worst":
            assert {k: v.mean for k, v in row.top.items()} == expected.top
            assert row.interval == expected.interval
            assert (row.spearman.mean, row.kendall.mean) == (expected.spearman, expected.kendall)
            assert row.pairwise_accuracy.mean == pytest.approx(0.0)
        if row.ranker == "best":
            assert [v.mean for v in row.top.values()] == [1.0, 1.0]
            assert row.pairwise_accuracy.mean == pytest.approx(1.0)
        if row.ranker == RANDOM:
            assert {k: v.mean for k, v in row.top.items()} == {k: v.mean for k, v in expected.random.items()}
            assert (row.spearman.mean, row.kendall.mean, row.pairwise_accuracy.mean) == (0.0, 0.0, 0.5)
    assert [row.ranker for row in comparison.rows[:3]] == [RANDOM, "best", "worst"]
    assert comparison.not_computable == {}


def test_what_was_seen_is_no_candidate_and_the_same_for_all(corpus: Corpus) -> None:
    one, other = Told("one"), Told("other", is_fixed=False)
    rows = compare_rankers(corpus, [one, other], seeds=(0, 1), seen=(0, 4, 8), ks=(1,)).rows
    assert one.shown == other.shown
    assert len(one.shown) == 2 * 2 * 2 * 2  # seeds, counts, tasks, platforms
    for _, seen, rest in one.shown:
        assert not set(seen) & set(rest)
        assert len({*corpus.whole.task_index[[*seen, *rest]]}) == 1
        assert len(seen) + len(rest) == 18
    sizes = [len(seen) for _, seen, _ in one.shown]
    assert sizes == [4] * 4 + [8] * 4 + [4] * 4 + [8] * 4
    assert set(one.shown[0][1]) < set(one.shown[4][1])  # fewer are part of more
    assert one.shown[0][1] != one.shown[8][1]  # another seed shows others
    assert row_of(rows, "one", 8).top[1].mean == 1.0  # the best of the rest is what counts


def test_rows_that_need_a_missing_task_are_named_not_made_smaller(corpus: Corpus, tmp_path: Path) -> None:
    missing = Told("partial", missing=(1,))
    comparison = compare_rankers(corpus, [missing], ks=(1,))
    assert {row.ranker for row in comparison.rows} == {RANDOM}
    assert comparison.not_computable == {"partial": {corpus.whole.tasks[1].workload_key: "it was not built"}}
    learned_from = Told("partial", missing=(3,))
    assert "partial" in {row.ranker for row in compare_rankers(corpus, [learned_from], ks=(1,)).rows}


def test_too_few_programs_to_show_are_refused(corpus: Corpus) -> None:
    key = corpus.judged.tasks[0].workload_key
    ranker = Told("never asked")
    with pytest.raises(DatasetError) as error:
        compare_rankers(corpus, [ranker], seen=(0, 18))
    assert str(error.value) == (
        f"`seen` 18: expected more than 18 measured programs of every test task, found 18 of {key} on "
        "alpha; show at most 17"
    )
    assert ranker.fits == []
    assert compare_rankers(corpus, [ranker], seen=(17,), ks=(1,)).rows[0].seen == 17


@pytest.mark.parametrize("name", ["one", RANDOM])
def test_two_rankers_of_one_name_are_refused(corpus: Corpus, name: str) -> None:
    with pytest.raises(DatasetError) as error:
        compare_rankers(corpus, [Told("one"), Told(name)])
    assert str(error.value) == (
        f'rankers: expected a name for each, found "{name}" more than once; rename the model'
    )


def test_a_missing_judged_task_fails(corpus: Corpus) -> None:
    corpus.judged.latencies[corpus.judged.programs_of(1), 1] = np.nan
    with pytest.raises(DatasetError, match="^platform beta: expected measured programs of "):
        compare_rankers(corpus, [Told("one")])


def test_labels_of_what_was_seen() -> None:
    assert labels_of(np.array([4.0, 2.0, np.inf])).tolist() == [0.5, 1.0, 0.0]
    assert labels_of(np.array([np.inf])).tolist() == [0.0]


def test_a_model_is_scored_by_its_heads_and_learns_as_a_search_does(corpus: Corpus) -> None:
    config, network = tiny_config()
    model = ScoringModel("tiny", config, network)
    ranker = ModelRanker(model, "ours")
    assert (ranker.name, ranker.fit(corpus, 0, print)) == ("ours", {})
    programs = corpus.judged_programs[:18]
    whole = model.score_all(corpus.embeddings(LAYOUT, programs))
    for column in (0, 1):
        np.testing.assert_allclose(ranker.scores(programs, column), whole[:, column], atol=1e-6)
    seen, rest = programs[:8], programs[8:]
    adapter = TaskAdapter()
    adapter.learn(corpus.embeddings(LAYOUT, seen), whole[:8, 1], corpus.whole.latencies[seen, 1])
    expected = adapter.speeds(corpus.embeddings(LAYOUT, rest), whole[8:, 1])
    np.testing.assert_allclose(ranker.scores_after(seen, rest, 1), expected, atol=1e-5)
    few = ranker.scores_after(programs[:2], rest, 1)  # too few to go by
    np.testing.assert_array_equal(few, ranker.scores(rest, 1))


def test_a_model_without_the_platform_is_refused(tmp_path: Path) -> None:
    config, network = tiny_config(heads=1)
    only = Corpus(write_dataset(tmp_path, platforms=("beta",)), LAYOUT, platforms=["beta"])
    with pytest.raises(ModelFileError, match='expected one of its platforms alpha, found "beta"'):
        ModelRanker(ScoringModel("tiny", config, network)).fit(only, 0, print)


def test_baselines_need_tasks_apart_from_those_judged(tmp_path: Path) -> None:
    source = write_dataset(tmp_path)
    for split in ("train", None):
        files = sorted(tmp_path.glob("alpha/train/*"))
        corpus = Corpus(source if split else files, LAYOUT, split=split)
        with pytest.raises(
            DatasetError, match='^dataset: expected tasks of the split "train" to fit baselines'
        ):
            _ = corpus.training_tasks


@pytest.mark.parametrize("seen", [(0,), (0, 4)])
def test_the_picture(corpus: Corpus, tmp_path: Path, seen: tuple[int, ...]) -> None:
    rows = compare_rankers(
        corpus, [Told("best"), Told("worst", -1.0)], seeds=(0, 1), seen=seen, ks=(1, 5)
    ).rows
    draw_rankers(rows, tmp_path / "rankers.png")
    assert (tmp_path / "rankers.png").read_bytes().startswith(b"\x89PNG")
