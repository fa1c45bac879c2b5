"""Top-k beside a plain reading of the formula, and the random pick beside all picks there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tlp_tvm.metrics.correlation import Agreement, agreement, ranks, spearman
from tlp_tvm.metrics.topk import RankedTask, mean_top_k, random_mean_top_k, random_top_k, top_k


def random_tasks(seed: int = 0, tasks: int = 5) -> list[RankedTask]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 30, tasks)
    return [RankedTask(rng.random(n) + 0.1, rng.normal(size=n), float(rng.integers(1, 9))) for n in sizes]


@pytest.mark.parametrize("k", [1, 2, 5, 100])
def test_top_k_is_the_formula(k: int) -> None:
    tasks = random_tasks()
    above = below = 0.0
    ratios = []
    for task in tasks:
        by_score = sorted(zip(task.scores, task.latencies, strict=True), reverse=True)
        chosen = min(latency for _, latency in by_score[:k])
        above += min(task.latencies) * task.weight
        below += chosen * task.weight
        ratios.append(min(task.latencies) / chosen)
    assert top_k(tasks, k) == pytest.approx(above / below)
    assert mean_top_k(tasks, k) == pytest.approx(sum(ratios) / len(ratios))


def test_a_perfect_model_scores_one() -> None:
    tasks = [RankedTask(task.latencies, -task.latencies, task.weight) for task in random_tasks()]
    assert top_k(tasks, 1) == mean_top_k(tasks, 1) == 1.0


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_random_picks_match_all_picks(k: int) -> None:
    rng = np.random.default_rng(1)
    task = RankedTask(rng.random(6) + 0.1, np.zeros(6), 3.0)
    picks = [min(task.latencies[list(pick)]) for pick in itertools.combinations(range(6), min(k, 6))]
    expected = np.mean(task.latencies.min() / np.array(picks))
    chance = random_top_k([task], k, draws=200_000)
    assert chance.mean == pytest.approx(expected, abs=0.003)
    assert random_mean_top_k([task], k, draws=200_000).mean == pytest.approx(expected, abs=0.003)
    assert chance.low <= chance.mean <= chance.high


def test_random_picks_of_several_tasks_match_random_scores() -> None:
    tasks = random_tasks(2)
    rng = np.random.default_rng(3)
    drawn = [
        [RankedTask(t.latencies, rng.random(len(t.scores)), t.weight) for t in tasks] for _ in range(4000)
    ]
    values = [top_k(each, 2) for each in drawn]
    chance = random_top_k(tasks, 2)
    assert chance.mean == pytest.approx(np.mean(values), abs=0.01)
    assert (chance.low, chance.high) == pytest.approx(tuple(np.percentile(values, (5, 95))), abs=0.02)
    assert random_mean_top_k(tasks, 2).mean == pytest.approx(
        np.mean([mean_top_k(e, 2) for e in drawn]), abs=0.01
    )


def test_ties_are_broken_by_chance_not_by_order() -> None:
    task = RankedTask(np.arange(1.0, 65.0), np.zeros(64))
    picks = {task.best_of(1, seed) for seed in range(20)}
    assert len(picks) > 5
    assert task.best_of(1, 7) == task.best_of(1, 7)


def test_ranks_share_ties() -> None:
    assert ranks([10.0, 30.0, 20.0, 20.0, 5.0]).tolist() == [1.0, 4.0, 2.5, 2.5, 0.0]


def test_spearman() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random(40), rng.random(40)
    plain = np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1]
    assert spearman(a, b) == pytest.approx(plain)
    assert spearman(a, np.exp(a)) == pytest.approx(1.0)
    assert spearman(a, -a) == pytest.approx(-1.0)
    assert spearman(a, np.ones(40)) == 0.0
    tied = np.round(a, 1)
    assert spearman(tied, b) == pytest.approx(np.corrcoef(ranks(tied), ranks(b))[0, 1])


@pytest.mark.parametrize("decimals", [9, 1, 0])
def test_agreement_counts_pairs(decimals: int) -> None:
    rng = np.random.default_rng(5)
    scores, speeds = rng.random((2, 30)).round(decimals)
    scores[:5] += speeds[:5]
    right = wrong = equal_scores = equal_speeds = 0
    accuracy = []
    for i, j in itertools.combinations(range(30), 2):
        sign = np.sign(scores[i] - scores[j]) * np.sign(speeds[i] - speeds[j])
        right, wrong = right + (sign > 0), wrong + (sign < 0)
        equal_scores += scores[i] == scores[j]
        equal_speeds += speeds[i] == speeds[j]
        if speeds[i] != speeds[j]:
            accuracy.append((sign + 1) / 2)
    pairs = 30 * 29 // 2
    found = agreement(scores, speeds)
    assert found.kendall == pytest.approx(
        (right - wrong) / np.sqrt((pairs - equal_scores) * float(pairs - equal_speeds))
    )
    assert found.pairwise_accuracy == pytest.approx(np.mean(accuracy))
    assert found.spearman == spearman(scores, speeds)


def test_agreement_of_what_has_no_order_is_chance() -> None:
    chance = Agreement(0.0, 0.0, 0.5)
    assert agreement([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) == chance
    assert agreement([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]) == chance
    assert agreement([1.0], [1.0]) == chance
    perfect = agreement([1.0, 2.0, 3.0], [4.0, 5.0, 9.0])
    assert (perfect.spearman, perfect.kendall, perfect.pairwise_accuracy) == pytest.approx((1.0, 1.0, 1.0))
