"""Summary of a comparison: final latencies, and when each model matched the baseline's."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.comparison.compare_settings import BASELINE
from tlp_tvm.errors import ComparisonError

RESULTS = "comparison.json"
FORMAT, FORMAT_VERSION = "tlp-tvm-comparison", 1


@dataclass(frozen=True)
class Run:
    """One search of one task under one model.

    Attributes:
        contender: the model, "xgb:64".
        task: short name of the workload.
        desc: TVM's description of the task.
        seed: of the search.
        best: (n,) lowest latency after each program, seconds; infinity before the first that ran.
        clock: (n,) seconds of the search's own time at each of them.
        last: final latency of the fastest program, timed beside the other searches', seconds; infinity if
            none ran.
        spent: seconds by part (`stopwatch.PARTS`).
    """

    contender: str
    task: str
    desc: str
    seed: int
    best: NDArray[np.float64]
    clock: NDArray[np.float64]
    last: float
    spent: dict[str, float]

    def reached(self, latency: float) -> tuple[int, float] | None:
        """After how many programs, and at which second, it was as fast as that; None if it never was."""
        found = np.flatnonzero(self.best <= latency)
        return (int(found[0]) + 1, float(self.clock[found[0]])) if len(found) else None


@dataclass(frozen=True)
class Against:
    """A model compared with the baseline, over all tasks and seeds.

    Attributes:
        contender: the model.
        runs: compared pairs of searches.
        latency: geometric mean of final latency / the baseline's; below 1 is faster.
        slowest: the largest of these ratios.
        slowest_task: the largest geometric mean of these ratios over the seeds of a task.
        slowest_found: the largest ratio of the lowest latencies that the searches themselves timed.
        reached: pairs in which it matched the baseline's best.
        sooner: geometric mean over the matched pairs of the baseline's total time / the time to match.
        sooner_bound: the same over all pairs, where an unmatched one counts with its total time; this
            flatters, so read it with `reached`.
        fewer: geometric mean over the matched pairs of the baseline's programs / the programs to match.
    """

    contender: str
    runs: int
    latency: float
    slowest: float
    slowest_task: float
    slowest_found: float
    reached: int
    sooner: float
    sooner_bound: float
    fewer: float


@dataclass(frozen=True)
class Comparison:
    """A comparison read back; `content` is the file itself."""

    content: dict[str, Any]

    @property
    def contenders(self) -> tuple[str, ...]:
        """The models, "tlp:16"."""
        return tuple(self.content["contenders"])

    @property
    def baseline(self) -> str | None:
        """The contender that the others are compared with: TVM's own model, if it took part."""
        return next((name for name in self.contenders if name.startswith(f"{BASELINE}:")), None)

    def runs(self) -> list[Run]:
        """Every search."""
        return [
            _run(name, group, entry)
            for group in self.content["groups"]
            for name, entry in group["sessions"].items()
        ]

    def against_baseline(self) -> list[Against]:
        """Every other model compared with the baseline; empty without one."""
        if self.baseline is None:
            return []
        runs = {(run.contender, run.task, run.seed): run for run in self.runs()}
        return [
            _against(
                name,
                [
                    (run, runs[self.baseline, task, seed])
                    for (contender, task, seed), run in runs.items()
                    if contender == name
                ],
            )
            for name in self.contenders
            if name != self.baseline
        ]


def read_comparison(folder: str | os.PathLike[str]) -> Comparison:
    """Read a comparison's folder.

    Args:
        folder: that `compare` wrote.

    Raises:
        ComparisonError: it holds none.
    """
    path = Path(folder) / RESULTS
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ComparisonError(f"{path}: expected a comparison, found {error}") from error
    found = (content.get("format"), content.get("format_version")) if isinstance(content, dict) else None
    if found != (FORMAT, FORMAT_VERSION):
        raise ComparisonError(f'{path}: expected "{FORMAT}" of version {FORMAT_VERSION}, found {found}')
    return Comparison(content)


def geometric_mean(ratios: Sequence[float]) -> float:
    """NaN for none."""
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else float("nan")


def _run(name: str, group: dict[str, Any], entry: dict[str, Any]) -> Run:
    latencies = np.array([np.inf if value is None else value for value in entry["latencies"]], np.float64)
    last = entry.get("last") or latencies.min(initial=np.inf)  # comparisons of before there were finals
    return Run(
        contender=name,
        task=group["task"],
        desc=group["desc"],
        seed=group["seed"],
        best=np.minimum.accumulate(latencies),
        clock=np.array(entry["clock"], np.float64),
        last=float(last),
        spent=entry["spent"],
    )


def _against(contender: str, pairs: Sequence[tuple[Run, Run]]) -> Against:
    pairs = [(run, base) for run, base in pairs if len(run.best) and np.isfinite(base.best[-1:]).all()]
    latency = [run.last / base.last for run, base in pairs]
    by_task: dict[str, list[float]] = {}
    for (run, _), ratio in zip(pairs, latency, strict=True):
        by_task.setdefault(run.task, []).append(ratio)
    reached = [(run.reached(float(base.best[-1])), run, base) for run, base in pairs]
    came = [(found, base) for found, _, base in reached if found is not None]
    sooner = [float(base.clock[-1] / found[1]) for found, base in came]
    bound = [
        float(base.clock[-1] / (run.clock[-1] if found is None else found[1])) for found, run, base in reached
    ]
    return Against(
        contender=contender,
        runs=len(pairs),
        latency=geometric_mean(latency),
        slowest=max(latency, default=math.nan),
        slowest_task=max(map(geometric_mean, by_task.values()), default=math.nan),
        slowest_found=max((float(run.best[-1] / base.best[-1]) for run, base in pairs), default=math.nan),
        reached=len(came),
        sooner=geometric_mean(sooner),
        sooner_bound=geometric_mean(bound),
        fewer=geometric_mean([len(base.best) / found[0] for found, base in came]),
    )
