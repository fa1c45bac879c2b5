"""One search of one task under one model, round by round, with its own clock."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tlp_tvm.comparison.compare_settings import CompareSettings
from tlp_tvm.comparison.stopwatch import PARTS
from tlp_tvm.framework import Contender, framework_named
from tlp_tvm.planned_task import PlannedTask


class Session:
    """A search that can be left after each round and resumed.

    Attributes:
        contender: whose search it is.
        latencies: seconds of each measured program, in order; infinity where it failed.
        last: seconds of the fastest, timed beside those of the other searches (`finals`); NaN before.
        clock: seconds of this session's own time, at each of them.
        spent: seconds by `PARTS`.
        done: whether it has measured all it may, or finds no more programs.
    """

    def __init__(
        self,
        contender: Contender,
        task: PlannedTask,
        seed: int,
        settings: CompareSettings,
        scorer: Any,
        pool: Any,
    ) -> None:
        """Set up the search; the clock counts that too.

        Args:
            contender: whose search it is.
            task: to search.
            seed: of the search, any non-negative integer.
            settings: of the comparison.
            scorer: the loaded model of those of "tlp"; None if there are none.
            pool: open, what the framework's `measuring` gave; its `note` is this session's in its turns.
        """
        self.contender = contender
        self.latencies: list[float] = []
        self.clock: list[float] = []
        self.last = float("nan")
        self._programs: list[Any] = []
        self.spent = dict.fromkeys(PARTS, 0.0)
        self.done = False
        self._trials = settings.trials
        self._random = np.random.default_rng(seed)
        self._pool = pool
        began = time.perf_counter()
        self._searcher = framework_named(settings.framework).searcher(
            contender, task, seed, settings.trials, scorer, pool, self.spent
        )
        self._time = self.spent["search"] = time.perf_counter() - began

    @property
    def best(self) -> float:
        """Lowest latency so far in seconds; infinity while there is none."""
        return min(self.latencies, default=float("inf"))

    def fastest(self, count: int) -> list[Any]:
        """The programs with the lowest latencies, as the pool takes them; those that failed left out.

        Args:
            count: how many at most.
        """
        order = sorted(range(len(self.latencies)), key=self.latencies.__getitem__)
        return [self._programs[i] for i in order[:count] if np.isfinite(self.latencies[i])]

    def advance(self) -> None:
        """One round: search, measure, learn. Nothing else may use the pool meanwhile."""
        before = dict(self._pool.spent)
        inside = self.spent["score"] + self.spent["learn"]
        self._began = time.perf_counter()
        measured = len(self.latencies)
        count = min(self.contender.per_round, self._trials - measured)
        state = np.random.get_state()  # noqa: NPY002 - TVM's models draw from NumPy's global generator
        np.random.seed(self._random.integers(2**31))  # noqa: NPY002
        try:
            self._searcher(count)
        finally:
            np.random.set_state(state)  # noqa: NPY002
        seconds = time.perf_counter() - self._began
        self._time += seconds
        for part in ("compile", "run"):
            self.spent[part] += self._pool.spent[part] - before[part]
            seconds -= self._pool.spent[part] - before[part]
        self.spent["search"] += seconds - (self.spent["score"] + self.spent["learn"] - inside)
        self.done = len(self.latencies) >= self._trials or len(self.latencies) == measured

    def note(self, latency: float, program: Any) -> None:
        """A program of this session was measured.

        Args:
            latency: seconds; infinity where it failed.
            program: as the pool takes it.
        """
        self.latencies.append(latency)
        self._programs.append(program)
        self.clock.append(self._time + time.perf_counter() - self._began)
