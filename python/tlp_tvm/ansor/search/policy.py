"""A search policy that breeds programs natively, and chooses itself what to measure.

A round: breeding (`breeding`), leaving out what was measured, choosing (`choosing`), replaying through TVM,
measuring with TVM's builder and runner, and teaching.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.adapting.choosing import choose_batch
from tlp_tvm.adapting.process import NOISE, prior
from tlp_tvm.ansor.breeding.evolution import evolve
from tlp_tvm.ansor.breeding.herd_scores import embedded, model_scores
from tlp_tvm.ansor.breeding.task_stock import TaskStock
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.latency import latency_of

POOL = 8
"""Programs that are found for each one that is measured."""

MOST_GROWTH = 16
"""How many times the population a search breeds that no longer gains: while the model's first choices bring
gains a small one is soon enough, and later what has not been found is what is missing."""

GENERATIONS = 2
"""Of a round. With four, what the model overrates is found more than what is fast: 3% slower in the end."""

GAIN = 0.01
"""Share of the best speed that a round must gain for the next to breed no more than the population."""

MEASURED_SHARE = 0.2
"""Of the population, at most, are programs that were measured."""

SPARE = 16
"""Programs that are chosen to replace those that TVM does not replay."""

BATCH = 8
"""Programs that are compiled side by side before they are timed one by one."""


class ChoosingPolicy:
    """Searches one task, a round at a time; in the place of TVM's SketchPolicy in its task scheduler.

    Attributes:
        search_task: `auto_scheduler.SearchTask`.
        scores: of bred programs.
        newly: programs that this search measured.
        seconds: that it took.
    """

    def __init__(
        self,
        task: Any,
        cost_model: TLPCostModel,
        options: Any,
        *,
        population: int,
        seed: int,
        diverse: bool,
        logs: Sequence[Path] = (),
    ) -> None:
        """Prepare.

        Args:
            task: `auto_scheduler.SearchTask`.
            cost_model: that scores.
            options: `auto_scheduler.TuningOptions`, of whose builder and runner a `MeasuringPool` takes over.
            population: programs that are bred in a generation.
            seed: of the search; positive.
            diverse: whether programs are chosen by what they may teach too, not by their scores alone.
            logs: TVM's record files; what they hold of the task breeds, and is not measured again.
        """
        self.search_task = task
        self._cost_model = cost_model
        self._options = options
        self._population = population
        self._diverse = diverse
        self._seed = seed
        self._round, self._growth = 0, 1
        self.newly, self.seconds = 0, 0.0
        self._breeding = TaskStock(task, seed)
        self.scores = model_scores(cost_model, task)
        self._programs = self._pool = self._breeding.stock.joined([])
        self._latencies = np.empty(0)
        self._refused = np.empty(0, np.uint64)
        for log in logs:
            self._read(log)

    @property
    def measured(self) -> int:
        """Programs of the task that were measured, those of earlier logs included."""
        return len(self._programs)

    @property
    def best(self) -> float:
        """Lowest latency so far, seconds; infinity while nothing ran."""
        return float(self._latencies.min(initial=np.inf))

    def continue_search_one_round(self, count: int, _measurer: Any = None) -> tuple[list[Any], list[Any]]:
        """Find, choose, measure and learn.

        Args:
            count: programs to measure.

        Returns:
            TVM's `MeasureInput`s and `MeasureResult`s; empty where nothing new is found.
        """
        before, began = self.best, time.monotonic()
        found, scores = self._found(POOL * count)
        wanted = self._choose(found, scores, count + SPARE)
        states = self._breeding.replayer.states(found, wanted, count)
        inputs, results = measure(self.search_task, [state for _, state in states], self._options)
        chosen = np.array([i for i, _ in states], np.intp)
        self._note(found.take(chosen), [latency_of(result) for result in results])
        ended = wanted.index(states[-1][0]) + 1 if states and len(states) == count else len(wanted)
        passed = np.array(wanted[:ended], np.intp)
        self._pool = found.take(np.setdiff1d(np.arange(len(found)), passed))  # without what TVM refused
        self._refused = np.union1d(self._refused, found.hashes[np.setdiff1d(passed, chosen)])
        gained = not self.best * (1 + GAIN) > before
        self._growth = 1 if gained else min(2 * self._growth, MOST_GROWTH)
        if inputs:
            self._cost_model.update(inputs, results)
        self.newly += len(inputs)
        self.seconds += time.monotonic() - began
        return inputs, results

    def _read(self, log: Path) -> None:
        batch = read_records(log)
        key = str(self.search_task.workload_key)
        tasks = [i for i, task in enumerate(batch.tasks) if task.workload_key == key]
        rows = np.flatnonzero(np.isin(batch.task_ids, tasks))
        lines = "".join(batch.line(int(row)) for row in rows)
        herd = self._breeding.stock.add_records(_core.read_block(lines.encode(), str(log), 1, False, 1))
        self._note(herd, batch.latencies[rows].tolist())

    def _note(self, programs: _core.Herd, latencies: Sequence[float]) -> None:
        """Take in measurements; of a program that was measured before, the later one counts."""
        latest = np.arange(len(programs))[::-1]
        joined = self._breeding.stock.joined([programs.take(latest), self._programs])
        _, first = np.unique(joined.hashes, return_index=True)
        first = np.sort(first)
        self._programs = joined.take(first)
        values = np.asarray(latencies, np.float64)[latest]
        self._latencies = np.concatenate([values, self._latencies])[first]

    def _found(self, count: int) -> tuple[_core.Herd, NDArray[np.float32]]:
        """Programs that were not measured and their scores, the best first."""
        self._round += 1
        fastest = np.argsort(self._latencies, kind="stable")
        fastest = fastest[np.isfinite(self._latencies[fastest])]
        best = self._programs.take(fastest[: max(1, int(MEASURED_SHARE * self._population))])
        found = evolve(
            self._breeding,
            self._breeding.distinct([self._breeding.sample, best, self._pool]),
            self.scores,
            population=self._growth * self._population,
            count=count,
            generations=GENERATIONS,
            seed=self._seed + self._round,
            known=np.concatenate([self._programs.hashes, self._refused]),
        )
        return found.herd, found.scores

    def _choose(self, found: _core.Herd, scores: NDArray[np.float32], count: int) -> list[int]:
        """The programs to measure, the most wanted first."""
        if not self._diverse or len(found) <= count:
            return list(range(min(count, len(found))))
        embeddings, own = self._scored(found)
        adapter = self._cost_model.adapter(str(self.search_task.workload_key))
        if adapter is not None and adapter.ready:
            expected, covariance = scores, adapter.covariance(embeddings, own)
            noise = adapter.noise
        else:
            (expected, covariance), noise = prior(embeddings, own), NOISE
        return choose_batch(expected, covariance, count, noise)

    def _scored(self, herd: _core.Herd) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        model = self._cost_model
        embeddings = embedded(herd, model.model.layout)
        return embeddings, model.model.score(embeddings, model.platform_for(str(self.search_task.target)))


def measure(task: Any, states: Sequence[Any], options: Any) -> tuple[list[Any], list[Any]]:
    """Measure programs with TVM's builder and runner.

    Args:
        task: `auto_scheduler.SearchTask`.
        states: the programs.
        options: `auto_scheduler.TuningOptions`.

    Returns:
        TVM's `MeasureInput`s and `MeasureResult`s.
    """
    inputs = [load_tvm().auto_scheduler.MeasureInput(task, state) for state in states]
    results: list[Any] = []
    for begin in range(0, len(inputs), BATCH):
        part = inputs[begin : begin + BATCH]
        results += list(options.runner.run(part, options.builder.build(part, verbose=0), verbose=0))
    return inputs, results
