"""How children differ from their parents: the rules of TVM's evolutionary search, and crossover."""

from __future__ import annotations

from typing import Any

from tlp_tvm import _core

UNROLLS = (0, 16, 64, 512)
"""Numbers of TVM's unroll pragma."""

GPU_UNROLLS = (*UNROLLS, 1024)

INNERMOST = 64
"""Longest innermost loop that TVM tiles: its `max_innermost_split_factor`."""

CHANGES = (0.70, 0.15, 0.05, 0.07, 0.03)
"""How often a child gets: a factor moved between two tile sizes of a split, a split drawn anew, another
unrolling, another form (where stages are computed, what is vectorised), another number of fused parallel
loops. TVM: 0.90, 0, 0.04, 0.05 (only where stages are computed), 0.01."""

GPU_CHANGES = (0.75, 0.15, 0.10, 0.0, 0.0)

ANOTHER = 0.3
"""Chance of a further change, after each."""

FRESH = 0.1
"""Share of children that are random programs."""

CROSS = 0.3
"""Share of the others with two parents."""

ALTER = 0.7
"""Share of those that are changed too."""


def plan_for(task: Any) -> _core.BreedingPlan:
    """The rules for a task.

    Args:
        task: `auto_scheduler.SearchTask`.
    """
    gpu = "gpu" in task.target.keys
    return _core.BreedingPlan(
        changes=list(GPU_CHANGES if gpu else CHANGES),
        unrolls=list(GPU_UNROLLS if gpu else UNROLLS),
        most_innermost=INNERMOST,
        another=ANOTHER,
        fresh=FRESH,
        cross=CROSS,
        alter=ALTER,
    )
