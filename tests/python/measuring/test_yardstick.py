"""The fastest program of a task tells whether the machine is as fast as it was."""

from __future__ import annotations

import pytest

from tlp_tvm.measuring import yardstick
from tlp_tvm.measuring.yardstick import NEAR, STEADY, Yardsticks


def of_one_second(now: float = 1.0) -> Yardsticks:
    """Knows a program of one second, which takes another time now."""
    yardsticks = Yardsticks()
    yardsticks.note("task", (1.0,), lambda: now)
    return yardsticks


def test_a_timing_counts_while_the_machine_is_as_fast_as_it_was() -> None:
    assert not of_one_second().doubtful("task", (1.1, 1.11, 1.1))
    assert not of_one_second(0.99 * STEADY).doubtful("task", (1.1,))


def test_a_timing_is_doubtful_while_the_machine_is_slower() -> None:
    assert of_one_second(1.01 * STEADY).doubtful("task", (1.1,))
    assert of_one_second(2.0).doubtful("task", (0.99 * 2.0 * NEAR,))


def test_a_timing_is_doubtful_if_its_repeats_differ() -> None:
    assert of_one_second().doubtful("task", (1.1, 1.1, 1.1 * 1.01 * STEADY))


def test_a_program_that_would_be_slow_without_the_slowing_is_not_worth_it() -> None:
    assert not of_one_second(1.3).doubtful("task", (1.01 * 1.3 * NEAR,))


def test_of_a_program_that_is_far_too_slow_the_machine_is_not_asked() -> None:
    def asked() -> float:
        raise AssertionError

    yardsticks = Yardsticks()
    yardsticks.note("task", (1.0,), asked)

    assert not yardsticks.doubtful("task", (2.1 * NEAR,))


def test_the_machine_may_turn_out_to_be_faster_than_it_was() -> None:
    yardsticks = of_one_second(0.8)

    assert not yardsticks.doubtful("task", (1.0,))
    yardsticks.note("task", (0.9,), lambda: 0.9)  # slower than .8: the first stays
    assert not yardsticks.doubtful("task", (1.25,))


def test_each_task_has_its_own_and_the_oldest_are_forgotten() -> None:
    yardsticks = of_one_second(2.0)
    for i in range(yardstick.MOST - 1):
        yardsticks.note(f"other {i}", (1.0,), lambda: 1.0)

    assert yardsticks.doubtful("task", (1.2,))
    assert not yardsticks.doubtful("other 0", (1.2,))
    yardsticks.note("one more", (1.0,), lambda: 1.0)
    with pytest.raises(KeyError):
        yardsticks.doubtful("task", (1.2,))
