"""A tuning stops in time for what follows, or when its last minutes foretell less than a hundredth more."""

from __future__ import annotations

import math

from tlp_tvm.tuning.when_to_stop import ExpectedGain, search_ends, tries_within, tuned_build_s


def said(estimates: dict[float, float], deadline: float) -> list[bool]:
    """What is said after each estimate, noted at its second."""
    now = [0.0]
    gain = ExpectedGain(lambda: now[0])
    answers = []
    for second, estimate in estimates.items():
        now[0] = second
        answers.append(gain.note(estimate, deadline))
    return answers


def test_nothing_is_expected_before_every_task_has_a_program_and_two_minutes_have_passed() -> None:
    assert said({0: math.inf, 100: math.inf, 200: 1.0, 310: 1.0}, 1000) == [False] * 4


def test_a_steady_gain_goes_on_and_two_flat_minutes_end_it() -> None:
    assert said({0: 1.0, 30: 0.9, 60: 0.8, 90: 0.7}, 600) == [False] * 4
    assert said({0: 0.7, 61: 0.7, 121: 0.7}, 600) == [False, False, True]


def test_a_small_gain_is_worth_a_long_rest_and_not_a_short_one() -> None:
    estimates = {0: 1.0, 120: 0.999}
    assert said(estimates, 120 + 300)[-1]
    assert not said(estimates, 120 + 1200)[-1]


def test_the_window_grows_with_the_time() -> None:
    flat = {0: 1.0, 300: 0.5, 310: 0.5, 370: 0.5}
    assert not said(flat, 1000)[-1]  # the last 185 seconds began with a large gain
    assert said({**flat, 700: 0.5}, 1000)[-1]


def test_measuring_stops_in_time_for_the_builds_that_follow() -> None:
    assert search_ends(1000.0, 0, 15.0, 6) is None
    assert search_ends(1000.0, 10, 15.0, 6) == 1000 + 600 - 6 * 15 - 10
    assert search_ends(1000.0, 10, 0.0, 6) == 1000 + 590
    assert search_ends(1000.0, 10, 16.0, 6, linked=True) == 1000 + 600 - 3 * 16 - 3 * 8 - 10
    assert search_ends(1000.0, 10, 16.0, 1, linked=True) == 1000 + 600 - 16 - 10


def test_builds_get_a_third_of_the_minutes_and_one_of_them_more() -> None:
    assert search_ends(1000.0, 3, 30.0, 6) == 1000 + 180 - 60 - 10
    assert search_ends(1000.0, 4, 90.0, 6) == 1000 + 240 - 90 - 10
    assert search_ends(1000.0, 2, 90.0, 6) == 1000 + 60  # half of it at the least


def test_a_build_is_foretold_by_the_untuned_one_and_then_by_its_programs() -> None:
    assert tuned_build_s(10.0, 18, 0.0) == 15.0
    assert tuned_build_s(10.0, 18, 1.5) == 27.0
    assert tuned_build_s(10.0, 18, 0.0, split_s=5.0) == 15.0
    assert tuned_build_s(10.0, 2, 1.5, split_s=5.0) == 9.0


def test_other_programs_are_tried_while_there_is_time_to_build_them_and_the_fastest() -> None:
    assert tries_within(math.inf, 20.0, 4) == 4
    assert tries_within(111.0, 20.0, 4) == 4
    assert tries_within(75.0, 20.0, 4) == 2
    assert tries_within(49.0, 20.0, 4) == 0
    assert tries_within(-30.0, 20.0, 4) == 0
    assert tries_within(60.0, 0.0, 4) == 4
    assert tries_within(10 + 2 * 20.0 + 3 * 10.0, 20.0, 4, linked=True) == 4
    assert tries_within(10 + 2 * 20.0 + 10.0, 20.0, 4, linked=True) == 2
    assert tries_within(49.0, 20.0, 4, linked=True) == 0
