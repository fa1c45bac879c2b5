"""What a tuning's programs are spent on: the tasks where they save the network most."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scorers import LinearScorer
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.policy import ChoosingPolicy
from tlp_tvm.breeding.spending import GAP, GIVEN_UP, cost, guessed_latency, round_of, saving, spend

ROUND = 16
TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


class Task:
    """A search whose best program is there from the first round on."""

    def __init__(
        self, best: float, size: int = 10**9, operations: float = 1e11, seconds: float = 1.0
    ) -> None:
        self.measured, self.best, self._left = 0, math.inf, size
        self.newly, self.seconds, self._seconds = 0, 0.0, seconds
        self._best = best
        self.promised, self.siblings = math.inf, tuple[Task, ...]()
        self.guess = guessed_latency(operations, 0.0)

    def one_round(self, count: int) -> int:
        count = min(count, self._left)
        self._left -= count
        self.measured += count
        self.newly += count
        self.seconds += count * self._seconds
        self.best = self._best
        return count


def spent(
    tasks: list[Task], weights: list[int], trials: int, by_time: bool = False
) -> tuple[list[int], list[int]]:
    """The order of the rounds, and the programs of each task."""
    order: list[int] = []
    spend(tasks, weights, trials, ROUND, order.append, by_time)  # type: ignore[arg-type]
    return order, [task.measured for task in tasks]


def test_the_heaviest_come_first_and_get_most() -> None:
    tasks = [Task(1e-3, operations=1e8), Task(1.0), Task(1.0), Task(1.0)]
    order, programs = spent(tasks, [1, 1, 9, 4], 400)
    assert order[:3] == [2, 3, 1]
    assert sum(programs) == 400
    assert programs[2] > programs[3] > programs[1] > programs[0] >= 1
    assert programs[2] / programs[1] == pytest.approx(3, rel=0.3)  # the square root of what they weigh


def test_first_rounds_are_small() -> None:
    tasks = [Task(1.0)]
    order, _ = spent(tasks, [1], 48)
    assert len(order) == 4  # 8, 8, 16, 16
    assert saving(tasks, [2], 0, 16) == pytest.approx(2 * (GAP / 48 - GAP / 64) / 16)  # type: ignore[arg-type]


def test_what_siblings_measured_counts_and_each_gets_what_is_found() -> None:
    one, other, _ = tasks = [Task(1.0), Task(2.0), Task(1.0)]
    one.siblings, other.siblings = (other,), (one,)
    for task, count in zip(tasks, (24, 8, 8), strict=True):
        task.one_round(count)

    found = [saving(tasks, [3, 1, 5], k, 8) for k in range(3)]  # type: ignore[arg-type]
    assert found[0] == found[1] == pytest.approx((3 * 1.0 + 1 * 2.0) * (GAP / 32 - GAP / 40) / 9)
    assert found[2] == pytest.approx(5 * (GAP / 8 - GAP / 16) / 8)


def test_what_a_sibling_promises_is_tried_alone() -> None:
    task, unmeasured = tasks = [Task(1.0), Task(1.0, operations=2e11)]
    task.one_round(8)
    for each, promised in ((task, 0.5), (unmeasured, 1.0)):
        each.promised = promised
        assert round_of(each, ROUND) == 1  # type: ignore[arg-type]
    assert saving(tasks, [2, 1], 0, 1) == pytest.approx(2 * 0.5)  # type: ignore[arg-type]

    task.promised = 0.995
    assert round_of(task, ROUND) == 8  # type: ignore[arg-type]


def test_where_time_is_short_a_program_that_costs_four_times_as_much_must_save_as_much() -> None:
    def programs(by_time: bool) -> list[int]:
        return spent([Task(1.0, seconds=4.0), Task(1.0)], [1, 1], 400, by_time)[1]

    dear, cheap = programs(True)
    assert cheap / dear == pytest.approx(2, rel=0.15)  # a task's next program saves as the square falls
    assert programs(False) == [208, 192]  # rounds of 16


def test_a_task_without_a_program_costs_what_the_others_do() -> None:
    tasks = [Task(1.0, seconds=4.0), Task(1.0, seconds=2.0), Task(1.0)]
    assert cost(tasks, 2) == 1.0  # type: ignore[arg-type]
    tasks[0].one_round(8)
    tasks[1].one_round(8)
    assert [cost(tasks, k) for k in range(3)] == [4.0, 2.0, 3.0]  # type: ignore[arg-type]


def test_each_task_gets_one_program_if_there_are_as_many() -> None:
    _, programs = spent([Task(1.0), *(Task(1e-6, operations=1e3) for _ in range(5))], [1] * 6, 20)
    assert programs == [15, 1, 1, 1, 1, 1]
    assert spent([Task(1.0) for _ in range(4)], [1] * 4, 4)[1] == [1, 1, 1, 1]


def test_an_empty_task_is_left_and_all_may_be() -> None:
    assert spent([Task(1.0, size=6), Task(1.0, size=3)], [1, 1], 100)[1] == [6, 3]


def test_a_task_of_which_nothing_runs_does_not_take_all() -> None:
    _, programs = spent([Task(math.inf), Task(1.0)], [1, 1], 200)
    assert GIVEN_UP <= programs[0] < GIVEN_UP + ROUND
    assert sum(programs) == 200


def test_what_a_task_may_take_is_told_from_its_work() -> None:
    model = TLPCostModel(LinearScorer())
    guesses: dict[str, Any] = {
        name: ChoosingPolicy(
            operator_task(name, TARGET), model, None, population=8, seed=1, diverse=False
        ).guess
        for name in ("conv2d", "softmax")
    }
    assert 0 < guesses["softmax"] < guesses["conv2d"] < 1
