"""Regret: times as long as the best, of the fastest of the first k choices."""

from __future__ import annotations

import math

import pytest

from tlp_tvm.evaluation.choice.regret import ChosenTask, regrets

INF = math.inf


def test_the_fastest_of_the_first_k_counts_against_the_best_of_all() -> None:
    tasks = [
        ChosenTask("a", {"net": 1}, 1.0, {"ours": (4.0, 2.0, 3.0), "theirs": (8.0, 8.0, 1.0)}),
        ChosenTask("b", {"net": 3}, INF, {"ours": (2.0, 2.0, 4.0), "theirs": (1.0, 4.0, 4.0)}),
    ]

    ours_1, ours_2, theirs_1, theirs_2 = regrets(tasks, ["ours", "theirs"], [1, 2])

    assert (ours_1.model, ours_1.k, ours_1.tasks) == ("ours", 1, 2)
    assert ours_1.mean == pytest.approx(math.sqrt(4 * 2))
    assert ours_1.network == pytest.approx((4 + 3 * 2) / (1 + 3 * 1))
    assert ours_1.worst == pytest.approx(4)
    assert (ours_1.interval.low, ours_1.interval.high) == pytest.approx((2, 4))
    assert ours_2.mean == pytest.approx(2)
    assert theirs_1.mean == theirs_2.mean == pytest.approx(math.sqrt(8))


def test_choices_that_do_not_run_are_passed_over_and_tasks_without_any_left_out() -> None:
    tasks = [
        ChosenTask("a", {"net": 1}, 1.0, {"ours": (INF, 3.0, 2.0)}),
        ChosenTask("b", {"net": 1}, 1.0, {"ours": (INF, INF, INF)}),
    ]

    (row,) = regrets(tasks, ["ours"], [1])

    assert (row.tasks, row.mean, row.worst) == (1, pytest.approx(3), pytest.approx(3))


def test_of_nothing_there_is_no_regret() -> None:
    (row,) = regrets([], ["ours"], [1])

    assert row.tasks == 0
    assert math.isnan(row.mean)
    assert math.isnan(row.interval.low)
