"""Is a compiled graph faster than the same graph run by PyTorch?"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

TURNS, SECONDS = 3, 0.02
"""Turns of each, and seconds of one at least."""

MARGIN = 1.05
"""Times as long as PyTorch's that count as no slower: two runs of one graph differ by so much."""


def in_turns(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of a run of each, the lowest of a few turns after one that warms up.

    Args:
        ours: runs the compiled graph.
        theirs: runs it by PyTorch.
    """
    lowest = [float("inf"), float("inf")]
    for turn in range(TURNS + 1):
        for i, run in enumerate((ours, theirs)):
            began, runs = time.perf_counter(), 0
            while runs == 0 or time.perf_counter() - began < SECONDS:
                run()
                runs += 1
            if turn:
                lowest[i] = min(lowest[i], (time.perf_counter() - began) / runs)
    return lowest[0], lowest[1]
