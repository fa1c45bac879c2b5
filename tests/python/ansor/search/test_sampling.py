"""Sampled programs: as many as asked for, no two alike, and the same again for the same seed."""

from __future__ import annotations

import pytest

from processes import random_states
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states, written_steps

N = 40


def programs(operator: str, n: int, *, target: str = "llvm", seed: int = 0) -> list[str]:
    task = operator_task(operator, target)
    return [str(written_steps(task, state)) for state in sample_states(task, n, seed)]


def test_programs_are_unique_and_repeatable() -> None:
    first = programs("dense", N)

    assert len(first) >= N
    assert len(set(first)) == len(first)
    assert programs("dense", N) == first
    assert set(programs("dense", N, seed=1)) != set(first)


@pytest.mark.parametrize("seed", [-1, 2**40])
def test_any_integer_is_a_seed(seed: int) -> None:
    assert len(programs("dense", 4, seed=seed)) >= 4


def test_a_space_that_is_too_small_gives_what_it_has() -> None:
    few = programs("reduction", 64, target="cuda -arch=sm_70")

    assert 0 < len(few) < 64
    assert len(set(few)) == len(few)


def test_it_is_silent_and_leaves_the_random_states_alone(capfd: pytest.CaptureFixture[str]) -> None:
    task = operator_task("dense", "llvm")
    before = random_states()
    capfd.readouterr()

    sample_states(task, N)

    assert random_states() == before
    assert capfd.readouterr() == ("", "")
