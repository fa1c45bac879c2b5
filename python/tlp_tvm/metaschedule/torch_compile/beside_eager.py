"""Does a compiled graph give what the same graph gives when PyTorch runs it, and is it faster?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tlp_tvm.bench.timing import Work, best_rates

TURNS, SECONDS = 3, 0.02
"""Turns of each, and seconds of one at least."""

MARGIN = 1.05
"""Times as long as PyTorch's that count as no slower: two runs of one graph differ by so much."""


EXPLAINED, ROUNDED = 1e-3, 0.1
"""Of the largest value of an output: what another order of additions explains, far more than any seen; and
the same of numbers that are narrower than float32."""

LEAST_LARGEST = 1e-3
"""An output without a larger value is held against this."""

NEAR_EQUALS = 0.01
"""Of an output's whole numbers, as indices, those that may differ: a choice among near equals."""


def difference(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    """How outputs differ, as a clause; empty where rounding explains it.

    Args:
        ours: of the compiled graph.
        theirs: of PyTorch.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} outputs of {len(theirs)}"
    for one, other in zip(ours, theirs, strict=True):
        if not isinstance(other, torch.Tensor):
            continue
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{one.dtype} {tuple(one.shape)} in the place of {other.dtype} {tuple(other.shape)}"
        if found := _apart(one, other):
            return found
    return ""


def _apart(one: torch.Tensor, other: torch.Tensor) -> str:
    unlike = ~((one == other) | (one.isnan() & other.isnan()))
    if not unlike.any():
        return ""
    if not other.is_floating_point():
        share = float(unlike.double().mean())
        return f"{share:.0%} of its whole numbers others" if share > NEAR_EQUALS else ""
    finite = other[other.isfinite()].abs()
    largest = max(LEAST_LARGEST, float(finite.max()) if len(finite) else 0.0)
    most = float((one[unlike].double() - other[unlike].double()).abs().max()) / largest
    limit = EXPLAINED if other.dtype in (torch.float32, torch.float64) else ROUNDED
    return "" if most <= limit else f"a difference of {most:.1e} of the largest value"


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
