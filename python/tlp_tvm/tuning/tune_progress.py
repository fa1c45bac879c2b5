"""Each measurement of a tuning goes into its log as it is made, and to the observer."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.latency import latency_of
from tlp_tvm.tuning.tune_observer import TuneObserver


class Progress:
    """What a `MeasuringPool` tells of each program.

    Attributes:
        trials: programs measured in all.
    """

    def __init__(
        self,
        log: Path,
        keys: Sequence[str],
        weights: Sequence[int],
        trials: int,
        best: Sequence[float],
        failures: collections.Counter[str],
        observer: TuneObserver,
    ) -> None:
        """Begin.

        Args:
            log: TVM's record file, appended to.
            keys: workload keys of the tasks.
            weights: how often each appears.
            trials: programs measured before.
            best: latency of each task in seconds so far; infinity for a task without one.
            failures: reason to how many programs failed for it; counted up.
            observer: is told.
        """
        self.trials = trials
        self._log = log
        self._save = load_tvm().auto_scheduler.save_records
        self._position = {key: i for i, key in enumerate(keys)}
        self._weights = np.asarray(weights, np.float64)
        self._best = np.asarray(best, np.float64)
        self._failures = failures
        self._observer = observer

    def __call__(self, measure_input: Any, result: Any, reason: str) -> None:
        """A program was measured, or failed for a reason."""
        self._save(str(self._log), [measure_input], [result])
        self.trials += 1
        if reason:
            self._failures[reason] += 1
        else:
            task = self._position[str(measure_input.task.workload_key)]
            self._best[task] = min(self._best[task], latency_of(result))
        self._observer.measured(self.trials, float(self._best @ self._weights), self._failures)
