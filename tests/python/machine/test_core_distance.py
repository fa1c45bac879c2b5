"""Where the cores are, by what a cache line takes between them."""

from __future__ import annotations

import os

import pytest

from tlp_tvm.machine.core_distance import placements, round_trip


def test_a_cache_line_comes_back() -> None:
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("this process may run on one core")
    assert 1e-9 < round_trip(2) < 1
    assert os.sched_getaffinity(0) == allowed


def test_one_core_has_no_other() -> None:
    assert round_trip(1) == 0


def test_round_trips_of_one_placement_are_like_each_other() -> None:
    far, near, one_core = [5.2e-7, 4.8e-7, 5.5e-7], [1.5e-7, 1.1e-7, 1.2e-7], [3e-8]
    assert placements([*far, *near, *one_core]) == [(3e-8, 3e-8), (1.1e-7, 1.5e-7), (4.8e-7, 5.5e-7)]
    assert placements([0.0, 0.0]) == [(0.0, 0.0)]
    assert placements([]) == []
