"""Rank correlation within a task."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tlp_tvm.metrics.correlation import Agreement, agreement, ranks, spearman


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
