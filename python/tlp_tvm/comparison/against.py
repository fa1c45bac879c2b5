"""A model's searches against the baseline's, by one clock for both.

A search has matched when it is as fast as the best of the baseline's whole search. Both are timed until
they first were that fast. What the baseline measured afterwards does not count: a search against itself is
exactly 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tlp_tvm.comparison.search_run import Run
from tlp_tvm.metrics.bootstrap import Interval, of_ratio

SHORTEST = 1e-3
"""Resolution of clocks, seconds."""

Pair = tuple[Run, Run]
"""A search and the baseline's of the same task and seed."""


@dataclass(frozen=True)
class Against:
    """A model compared with the baseline, over all tasks and seeds. Means are geometric.

    Attributes:
        contender: the model.
        runs: compared pairs of searches.
        latency: mean of final latency / the baseline's; below 1 is faster.
        latency_interval: its bootstrap interval over tasks.
        slowest: the largest of these ratios.
        slowest_task: the largest mean of these ratios over the seeds of a task.
        slowest_found: the largest ratio of the lowest latencies that the searches themselves timed.
        reached: pairs in which it matched the baseline's best.
        sooner: mean over the matched pairs of the time until the baseline first had its best / the time to
            match.
        sooner_all: the restricted mean over all pairs: an unmatched search counts as if it matched when the
            longer of the two searches ended, so with 1 at most.
        sooner_all_interval: its bootstrap interval over tasks.
        fewer: mean over the matched pairs of the programs until the baseline first had its best / the
            programs to match.
    """

    contender: str
    runs: int
    latency: float
    latency_interval: Interval
    slowest: float
    slowest_task: float
    slowest_found: float
    reached: int
    sooner: float
    sooner_all: float
    sooner_all_interval: Interval
    fewer: float


def speedup(run: Run, base: Run) -> float | None:
    """The time until the baseline first had its best / the time to match it; None if that never was."""
    goal = float(base.best[-1])
    own, theirs = run.reached(goal), base.reached(goal)
    return None if own is None or theirs is None else _time_ratio(theirs[1], own[1])


def restricted_speedup(run: Run, base: Run) -> float:
    """As `speedup`; an unmatched search counts as matched when the longer of the two ended."""
    matched, theirs = speedup(run, base), base.reached(float(base.best[-1]))
    if matched is not None:
        return matched
    assert theirs is not None
    return _time_ratio(theirs[1], float(max(run.clock[-1], base.clock[-1])))


def against(contender: str, pairs: Sequence[Pair]) -> Against:
    """Sum up a contender's searches.

    Args:
        contender: the model.
        pairs: its searches, each with the baseline's; those in which the baseline's ran no program are left
            out.
    """
    pairs = [(run, base) for run, base in pairs if len(run.best) and np.isfinite(base.best[-1:]).all()]
    latency = [run.last / base.last for run, base in pairs]
    tasks = [run.task for run, _ in pairs]
    matched = [pair for pair in pairs if speedup(*pair) is not None]
    every = [restricted_speedup(*pair) for pair in pairs]
    return Against(
        contender=contender,
        runs=len(pairs),
        latency=geometric_mean(latency),
        latency_interval=_interval(tasks, latency),
        slowest=max(latency, default=math.nan),
        slowest_task=max(map(geometric_mean, _by_task(tasks, latency).values()), default=math.nan),
        slowest_found=max((float(run.best[-1] / base.best[-1]) for run, base in pairs), default=math.nan),
        reached=len(matched),
        sooner=geometric_mean([restricted_speedup(*pair) for pair in matched]),
        sooner_all=geometric_mean(every),
        sooner_all_interval=_interval(tasks, every),
        fewer=geometric_mean([_fewer(*pair) for pair in matched]),
    )


def geometric_mean(ratios: Sequence[float]) -> float:
    """NaN for none."""
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else float("nan")


def _time_ratio(theirs: float, own: float) -> float:
    return max(theirs, SHORTEST) / max(own, SHORTEST)


def _fewer(run: Run, base: Run) -> float:
    goal = float(base.best[-1])
    own, theirs = run.reached(goal), base.reached(goal)
    assert own is not None
    assert theirs is not None
    return theirs[0] / own[0]


def _by_task(tasks: Sequence[str], ratios: Sequence[float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for task, ratio in zip(tasks, ratios, strict=True):
        found.setdefault(task, []).append(ratio)
    return found


def _interval(tasks: Sequence[str], ratios: Sequence[float]) -> Interval:
    """Of the geometric mean; a task is drawn with all of its searches."""
    each = [np.log(values) for values in _by_task(tasks, ratios).values()]
    sums, counts = np.array([logs.sum() for logs in each]), np.array([float(len(logs)) for logs in each])
    found = of_ratio(sums, counts)
    return Interval(math.exp(found.low), math.exp(found.high))
