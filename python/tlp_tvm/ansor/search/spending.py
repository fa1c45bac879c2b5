"""Which task is searched next: the one whose next programs are expected to save the network most time.

What a search gains is much the same for all tasks: after n programs the best is about 1.1 / n slower than
what 128 would find (`GAP`). So a task's next round saves its latency in the network times what that falls by.
Where time is what is short, that counts by the second: a Winograd program compiles four times as long as
others. Tasks of which nothing was measured are taken for what their operations and bytes let expect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tlp_tvm.ansor.search.policy import BATCH, ChoosingPolicy

GAP = 1.1
"""Of a task with n measured programs, GAP / n is what its best is expected to be above the lowest latency.
Means over 154 searches of 4, 8, 16, 32, 48 and 64 programs: .25, .12, .069, .039, .026, .017."""

UNMEASURED = 2.0
"""The same of a task without a program: it keeps TVM's own schedule, which is as much slower."""

GIVEN_UP = 32
"""Programs of a task that may fail, before it is left."""

OPERATIONS_PER_S, BYTES_PER_S = 1e11, 2e10
"""That a task without a program is taken to run with. Only what tasks are to each other counts."""


def spend(
    policies: Sequence[ChoosingPolicy],
    weights: Sequence[int],
    trials: int,
    per_round: int,
    begin: Callable[[int], None],
    by_time: bool = False,
) -> None:
    """Measure programs where they save most; each task gets one at least, if there are as many.

    Args:
        policies: of each task.
        weights: how often each appears.
        trials: programs to measure; fewer where nothing is left.
        per_round: most programs of a task at a time.
        begin: called with the task's index as its round begins; may raise to stop.
        by_time: whether seconds are short, and not programs.
    """
    guesses = [guessed_latency(policy.search_task) for policy in policies]

    def worth(k: int) -> float:
        saved = saving(policies[k], weights[k], guesses[k], round_of(policies[k], per_round))
        return saved / (cost(policies, k) if by_time else 1.0)

    open_tasks = set(range(len(policies)))
    while trials > 0 and open_tasks:
        i = max(sorted(open_tasks), key=worth)
        others = sum(not policies[k].measured for k in open_tasks if k != i)
        count = min(round_of(policies[i], per_round), trials - others)
        if count <= 0:  # as many programs are left as there are tasks without one
            i, count = next(k for k in sorted(open_tasks) if not policies[k].measured), 1
        begin(i)
        measured = len(policies[i].continue_search_one_round(count)[0])
        trials -= measured
        if not measured or (policies[i].measured >= GIVEN_UP and not math.isfinite(policies[i].best)):
            open_tasks.discard(i)


def round_of(policy: ChoosingPolicy, most: int) -> int:
    """Programs of a task's next round: few at first, as the second round knows what the first one taught."""
    return min(most, BATCH) if policy.measured < 2 * BATCH else most


def saving(policy: ChoosingPolicy, weight: int, guess: float, count: int) -> float:
    """Seconds of the network that each program of a task's next round is expected to save.

    Args:
        policy: of the task.
        weight: how often it appears.
        guess: its latency as long as no program ran, seconds.
        count: programs of the round.
    """
    before = policy.measured
    latency = policy.best if math.isfinite(policy.best) else guess
    gap = GAP / before if before else UNMEASURED
    return weight * latency * (gap - GAP / (before + count)) / count


def cost(policies: Sequence[ChoosingPolicy], k: int) -> float:
    """Seconds that a program of a task takes to find and to measure.

    Args:
        policies: of all tasks: one of which nothing was measured is taken to cost what the others do.
        k: the task's index.
    """
    known = [policies[k]] if policies[k].newly else [each for each in policies if each.newly]
    return sum(each.seconds for each in known) / sum(each.newly for each in known) if known else 1.0


def guessed_latency(task: Any) -> float:
    """What a task may take, seconds, by its operations and bytes.

    Args:
        task: `auto_scheduler.SearchTask`.
    """
    dag = task.compute_dag
    sizes = [math.prod(int(extent) for extent in tensor.shape) for tensor in dag.tensors]
    moved = 4 * float(np.sum(sizes))
    return max(0.0, float(dag.flop_ct)) / OPERATIONS_PER_S + moved / BYTES_PER_S
