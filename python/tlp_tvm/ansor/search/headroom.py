"""Which task is next: that whose next programs are expected to save the network most time.

TVM's scheduler looks at what a task has gained before. A model that learns online also knows what it expects
of the programs that were found and not measured: their expected improvement over the task's best, times what
the task takes in the network. Expectations that were not met count less the next time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tlp_tvm.adapting.adaptation import UNIT
from tlp_tvm.ansor.search.policy import ChoosingPolicy

LEAST_TRUST = 0.05
"""Of a task whose expectations are never met."""


GIVEN_UP = 32
"""Programs of a task that may fail, before others are preferred."""

UNKNOWN_GAIN = 4.0
"""`UNIT`s of speed that a task may gain of which too few programs ran to say."""


def spend(
    policies: Sequence[ChoosingPolicy],
    weights: Sequence[int],
    trials: int,
    per_round: int,
    patience: int,
    begin: Callable[[int], None],
) -> None:
    """Measure programs where most is expected, every task once before that.

    Args:
        policies: of each task.
        weights: how often each appears.
        trials: programs to measure; fewer where nothing is left.
        per_round: programs of a task at a time.
        patience: programs of a task without a gain before it is left; 0 for never.
        begin: called with the task's index as its round begins; may raise to stop.
    """
    trust = [1.0] * len(policies)
    fruitless = [0] * len(policies)
    waiting = [i for i, policy in enumerate(policies) if not policy.measured]
    open_tasks = set(range(len(policies)))
    while trials > 0 and open_tasks:
        if waiting:
            i = waiting.pop(0)
        else:
            rooms = {k: headroom(policies[k], weights[k], trust[k]) for k in sorted(open_tasks)}
            i = max(rooms, key=lambda k: rooms[k])
        begin(i)
        best, expected = policies[i].best, policies[i].expected_gain()
        count = len(policies[i].continue_search_one_round(min(per_round, trials))[0])
        trials -= count
        now = policies[i].best
        gained = (best / now - 1) / UNIT if np.isfinite(now) else 0.0
        fruitless[i] = 0 if gained > 0 else fruitless[i] + count
        if np.isfinite(expected) and np.isfinite(gained) and expected > 0:
            trust[i] = max(LEAST_TRUST, (trust[i] + min(1.0, gained / expected)) / 2)
        if not count or (patience and fruitless[i] >= patience):
            open_tasks.discard(i)


def headroom(policy: ChoosingPolicy, weight: int, trust: float) -> float:
    """Seconds of the network that a task's next round is expected to save.

    Args:
        policy: of the task.
        weight: how often the task appears.
        trust: share of its expectations that were met.

    Returns:
        Infinity for a task of which nothing ran yet, and 0 if that seems to stay so.
    """
    if not np.isfinite(policy.best):
        return math.inf if policy.measured < GIVEN_UP else 0.0
    gain = policy.expected_gain()
    if not np.isfinite(gain):
        gain = UNKNOWN_GAIN
    return weight * policy.best * (1 - 1 / (1 + UNIT * gain)) * trust
