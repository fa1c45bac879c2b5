"""Intervals over tasks."""

from __future__ import annotations

import numpy as np
import pytest

from tlp_tvm.metrics.bootstrap import of_ratio, over_tasks


def test_equal_tasks_leave_no_doubt_and_the_same_values_give_the_same_interval() -> None:
    equal = of_ratio(np.full(5, 0.5), np.ones(5))
    values = np.random.default_rng(1).random(40)

    assert equal.low == equal.high == pytest.approx(0.5)
    assert of_ratio(values, np.ones(40)) == of_ratio(values, np.ones(40))


def test_the_interval_of_a_mean_is_that_of_its_standard_error() -> None:
    values = np.random.default_rng(1).normal(size=400)
    found = of_ratio(values, np.ones(400))
    error = float(values.std() / 20)

    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_a_heavy_task_widens_the_interval_of_a_ratio() -> None:
    below = np.ones(20)
    even = of_ratio(0.8 * below, below)
    below[0], above = 100.0, 0.8 * below
    above[0] = 20.0
    heavy = of_ratio(above, below)

    assert even.high - even.low == pytest.approx(0)
    assert heavy.high - heavy.low > 0.4


def test_nothing_to_draw_from_is_no_interval() -> None:
    assert np.isnan(over_tasks(0, lambda times: times.sum(1)).low)
    assert np.isnan(of_ratio(np.full(3, np.nan), np.ones(3)).low)
