"""Passes each measurement of a tuning to its log and to the observer at once."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.errors import TuningError
from tlp_tvm.logs import append_line
from tlp_tvm.tuning.tune_observer import TuneObserver


class Progress:
    """What was measured so far.

    Attributes:
        trials: programs measured in all.
        error: why a record could not be written; TVM's frames may lose what a callback raises.
    """

    def __init__(
        self,
        log: Path,
        weights: Sequence[int],
        trials: int,
        best: Sequence[float],
        failures: collections.Counter[str],
        observer: TuneObserver,
        on_estimate: Callable[[float], None] = lambda _estimate: None,
    ) -> None:
        """Begin.

        Args:
            log: record file, appended to.
            weights: how often each task appears.
            trials: programs measured before.
            best: latency of each task in seconds so far; infinity for a task without one.
            failures: reason to how many programs failed for it; counted up.
            observer: receives the progress.
            on_estimate: receives the latency of the network, seconds, after each program.
        """
        self.trials = trials
        self.error: TuningError | None = None
        self._log = log
        self._weights = np.asarray(weights, np.float64)
        self._best = np.array(best, np.float64)
        self._failures = failures
        self._observer = observer
        self._on_estimate = on_estimate

    def write(self, record: str) -> None:
        """Bring a record to the disk.

        Raises:
            TuningError: it cannot be written; what was whole stays whole.
        """
        try:
            append_line(self._log, record)
        except OSError as error:
            self.error = not_written(self._log, error)
            raise self.error from error

    def measured(self, reason: str = "") -> None:
        """A program was measured, or failed for a reason."""
        self.trials += 1
        if reason:
            self._failures[reason] += 1
        estimate = float(self._best @ self._weights)
        self._observer.measured(self.trials, estimate, self._failures)
        self._on_estimate(estimate)

    @property
    def best(self) -> NDArray[np.float64]:
        """Latency of each task in seconds so far; infinity for one without a program that ran."""
        return self._best

    @property
    def without(self) -> int:
        """How many tasks have no program that ran."""
        return int(np.isinf(self._best).sum())

    def ran(self, task: int, latency: float) -> None:
        """A program of a task ran so fast, in seconds."""
        self._best[task] = min(self._best[task], latency)


def not_written(log: Path, error: OSError) -> TuningError:
    """Why a tuning cannot continue."""
    return TuningError(
        f"{log}: expected room for one more record, found: {error.strerror}; make room, and run the same "
        "command again: what was measured is kept"
    )
