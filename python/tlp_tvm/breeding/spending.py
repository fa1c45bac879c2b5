"""Which task is searched next: the one whose next programs are expected to save the network most time.

What a search gains is much the same for all tasks: after n programs the best is about 1.1 / n slower than
what 128 would find (`GAP`). So a task's next round saves its latency in the network times what that falls by.
Where time is what is short, that counts by the second: a Winograd program compiles four times as long as
others. Tasks of which nothing was measured are taken for what their operations and bytes let expect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tlp_tvm.breeding.rounds import BATCH, GAIN, RoundSearch

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
    searches: Sequence[RoundSearch],
    weights: Sequence[int],
    trials: int,
    per_round: int,
    begin: Callable[[int], None],
    by_time: bool = False,
) -> None:
    """Measure programs where they save most; each task gets one at least, if there are as many.

    Args:
        searches: of each task.
        weights: how often each appears.
        trials: programs to measure; fewer where nothing is left.
        per_round: most programs of a task at a time.
        begin: called with the task's index as its round begins; may raise to stop.
        by_time: whether seconds are short, and not programs.
    """

    def worth(k: int) -> float:
        saved = saving(searches, weights, k, round_of(searches[k], per_round))
        return saved / (cost(searches, k) if by_time else 1.0)

    open_tasks = set(range(len(searches)))
    while trials > 0 and open_tasks:
        i = max(sorted(open_tasks), key=worth)
        others = sum(not searches[k].measured for k in open_tasks if k != i)
        count = min(round_of(searches[i], per_round), trials - others)
        if count <= 0:  # as many programs are left as there are tasks without one
            i, count = next(k for k in sorted(open_tasks) if not searches[k].measured), 1
        begin(i)
        measured = searches[i].one_round(count)
        trials -= measured
        if not measured or (searches[i].measured >= GIVEN_UP and not math.isfinite(searches[i].best)):
            open_tasks.discard(i)


def round_of(search: RoundSearch, most: int) -> int:
    """Programs of a task's next round: few at first, as the second round knows what the first one taught.

    One, where that promises much: what comes of it may be bred.
    """
    if search.promised * (1 + GAIN) < latency_so_far(search):
        return 1
    return min(most, BATCH) if search.measured < 2 * BATCH else most


def latency_so_far(search: RoundSearch) -> float:
    """A task's lowest latency, or what it may take as long as no program ran.

    Args:
        search: of the task.
    """
    return search.best if math.isfinite(search.best) else search.guess


def saving(searches: Sequence[RoundSearch], weights: Sequence[int], k: int, count: int) -> float:
    """Seconds of the network that each program of a task's next round is expected to save.

    What siblings measured counts as the task's own, and what it finds as theirs, for a program of each.

    Args:
        searches: of all tasks.
        weights: how often each appears.
        k: the task's index.
        count: programs of the round.
    """
    search, latency = searches[k], latency_so_far(searches[k])
    promised = weights[k] * (latency - search.promised) / count
    if not search.measured:
        return max(promised, weights[k] * latency * (UNMEASURED - GAP / count) / count)
    family = [k, *(i for i, other in enumerate(searches) if any(other is each for each in search.siblings))]
    before = sum(searches[i].measured for i in family)
    at_stake = sum(weights[i] * latency_so_far(searches[i]) for i in family)
    gained = at_stake * (GAP / before - GAP / (before + count))
    return max(promised, gained / (count + len(family) - 1))


def cost(searches: Sequence[RoundSearch], k: int) -> float:
    """Seconds that a program of a task takes to find and to measure.

    Args:
        searches: of all tasks: one of which nothing was measured is taken to cost what the others do.
        k: the task's index.
    """
    known = [searches[k]] if searches[k].newly else [each for each in searches if each.newly]
    return sum(each.seconds for each in known) / sum(each.newly for each in known) if known else 1.0


def guessed_latency(operations: float, moved: float) -> float:
    """What a task may take, seconds.

    Args:
        operations: floating-point operations.
        moved: bytes of its tensors.
    """
    return max(0.0, operations) / OPERATIONS_PER_S + moved / BYTES_PER_S
