"""The fastest programs of all searches of a task, timed once more, in turns.

What a search found is the least of some hundred timings, each at another time on a machine that other work
slows down by turns; which model was lucky with that should not decide a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tlp_tvm.comparison.session import Session
from tlp_tvm.latency import latency_of_costs

FINALISTS = 3
"""Programs of each search: which of those that are alike is the fastest, one timing of each does not tell."""

PASSES = 4
"""Times that each of them is compiled and timed anew."""


def timed_again(sessions: Sequence[Session], pool: Any) -> list[float]:
    """Time the fastest programs of searches that are done.

    Args:
        sessions: of one task.
        pool: that measured their programs, open.

    Returns:
        Of each search the lowest latency, seconds; infinity where nothing ran.
    """
    best = [math.inf] * len(sessions)
    finalists = [(i, each) for i, session in enumerate(sessions) for each in session.fastest(FINALISTS)]
    for _ in range(PASSES):
        finalists.reverse()
        programs = [program for _, program in finalists]
        for j, outcome in pool.run_all(pool.build(programs), programs):
            if not outcome.error:
                i = finalists[j][0]
                best[i] = min(best[i], latency_of_costs(outcome.costs))
    return best
