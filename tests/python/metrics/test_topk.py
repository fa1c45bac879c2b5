"""Top-k beside a plain reading of the formula, and the random pick beside all picks there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

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
