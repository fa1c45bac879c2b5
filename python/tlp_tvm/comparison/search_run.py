"""One search of a comparison, read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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

    @classmethod
    def of(cls, name: str, group: dict[str, Any], entry: dict[str, Any]) -> Run:
        """From a group of comparison.json and the contender's entry in it."""
        latencies = np.array([np.inf if value is None else value for value in entry["latencies"]], np.float64)
        last = entry.get("last") or latencies.min(initial=np.inf)  # comparisons of before there were finals
        return cls(
            contender=name,
            task=group["task"],
            desc=group["desc"],
            seed=group["seed"],
            best=np.minimum.accumulate(latencies),
            clock=np.array(entry["clock"], np.float64),
            last=float(last),
            spent=entry["spent"],
        )

    def reached(self, latency: float) -> tuple[int, float] | None:
        """After how many programs, and at which second, it was as fast as that; None if it never was."""
        found = np.flatnonzero(self.best <= latency)
        return (int(found[0]) + 1, float(self.clock[found[0]])) if len(found) else None
