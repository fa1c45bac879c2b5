"""Is a compiled graph faster than the same graph run by PyTorch?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tlp_tvm.bench.timing import Work, best_rates

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
    works, turns = {"ours": Work(ours, 1), "theirs": Work(theirs, 1)}, TURNS + 1
    rates = best_rates(works, seconds=turns * SECONDS, turns=turns)
    return 1 / rates["ours"], 1 / rates["theirs"]


def is_slower(ours: float, theirs: float) -> bool:
    """Whether a graph is left to PyTorch.

    Args:
        ours: seconds of a run of the compiled graph.
        theirs: of one by PyTorch.
    """
    return ours > MARGIN * theirs
