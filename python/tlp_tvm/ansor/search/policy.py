"""A search policy that finds programs as TVM's SketchPolicy does and chooses itself what to measure.

TVM's own policy measures the top of its list (and a few random programs), and does not tell what else it
found. Here its sampling and its evolution are called one by one, and the rest of the round is done in Python:
leaving out what was measured, choosing (`choosing`), measuring with TVM's builder and runner, and teaching.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.choosing import choose_batch, expected_gain
from tlp_tvm.adapting.process import NOISE, prior
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading import states as native_states
from tlp_tvm.ansor.reading.states import extract_states
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.latency import latency_of

POOL = 8
"""Programs that are found for each one that is measured."""

MOST_GROWTH = 4
"""How many times the population a search breeds that no longer gains: while the model's first choices bring
gains a small one is soon enough, and later what has not been found is what is missing."""

GAIN = 0.01
"""Share of the best speed that a round must gain for the next to breed no more than the population."""

MEASURED_SHARE = 0.2
"""Of the population, at most, are programs that were measured: TVM's `sample_init_use_measured_ratio`."""

BATCH = 8
"""Programs that are compiled side by side before they are timed one by one."""


class ChoosingPolicy:
    """Searches one task, a round at a time; in the place of TVM's SketchPolicy in its task scheduler.

    Attributes:
        search_task: `auto_scheduler.SearchTask`.
        sketch_policy: TVM's policy, which finds programs.
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
            population: programs that breed in a round.
            seed: of the search; positive.
            diverse: whether programs are chosen by what they may teach too, not by their scores alone.
            logs: TVM's record files; what they hold of the task breeds, and is not measured again.
        """
        self.search_task = task
        self._cost_model = cost_model
        self._options = options
        self._population = population
        self._diverse = diverse
        self._measured: dict[str, tuple[float, Any]] = {}
        self._pool: list[Any] = []
        self._seed = seed
        self._growth = 1
        self.sketch_policy = self._breeder(1)
        self._breeders = {1: self.sketch_policy}
        for log in logs:
            self._read(log)

    @property
    def measured(self) -> int:
        """Programs of the task that were measured, those of earlier logs included."""
        return len(self._measured)

    @property
    def best(self) -> float:
        """Lowest latency so far, seconds; infinity while nothing ran."""
        return min((seconds for seconds, _ in self._measured.values()), default=np.inf)

    def continue_search_one_round(self, count: int, _measurer: Any = None) -> tuple[list[Any], list[Any]]:
        """Find, choose, measure and learn.

        Args:
            count: programs to measure.

        Returns:
            TVM's `MeasureInput`s and `MeasureResult`s; empty where nothing new is found.
        """
        before = self.best
        found = self._found(POOL * count)
        chosen = self._choose(found, count)
        inputs, results = measure(self.search_task, [found[i] for i in chosen], self._options)
        for measured, result in zip(inputs, results, strict=True):
            self._note(measured.state, result)
        taken = set(chosen)
        self._pool = [state for i, state in enumerate(found) if i not in taken]
        gained = not self.best * (1 + GAIN) > before
        self._growth = 1 if gained else min(2 * self._growth, MOST_GROWTH)
        if inputs:
            self._cost_model.update(inputs, results)
        return inputs, results

    def expected_gain(self) -> float:
        """What the next program is expected to gain, in `UNIT`s of the best speed; infinity if unknown."""
        adapter = self._cost_model.adapter(str(self.search_task.workload_key))
        if not self._pool or adapter is None or not adapter.ready:
            return float("inf")
        embeddings, scores = self._scored(self._pool)
        variance = np.diag(adapter.covariance(embeddings, scores))
        return expected_gain(adapter.speeds(embeddings, scores), variance)

    def _breeder(self, growth: int) -> Any:
        """TVM's policy with this multiple of the usual population."""
        params = {"evolutionary_search_population": growth * self._population}
        policy = load_tvm().auto_scheduler.SketchPolicy
        return policy(self.search_task, self._cost_model, params=params, seed=self._seed, verbose=0)

    def _read(self, log: Path) -> None:
        auto_scheduler = load_tvm().auto_scheduler
        for measured, result in auto_scheduler.RecordReader(str(log)):
            if str(measured.task.workload_key) == str(self.search_task.workload_key):
                state = self.search_task.compute_dag.infer_bound_from_state(measured.state)
                self._note(state, result)

    def _note(self, state: Any, result: Any) -> None:
        bare = getattr(state, "state_object", state)
        self._measured[_names_of([bare])[0]] = latency_of(result), bare

    def _found(self, count: int) -> list[Any]:
        """Programs that were not measured, the best scores first."""
        best = sorted(self._measured.values(), key=lambda entry: entry[0])
        best = [entry for entry in best if np.isfinite(entry[0])][: int(MEASURED_SHARE * self._population)]
        start = list(self.sketch_policy.sample_initial_population())
        start += [state for _, state in best] + self._pool
        if self._growth not in self._breeders:
            self._breeders[self._growth] = self._breeder(self._growth)
        breeder = self._breeders[self._growth]
        evolved = breeder.evolutionary_search(start, count + len(self._measured))
        infer = self.search_task.compute_dag.infer_bound_from_state
        states = [infer(state).state_object for state in evolved]
        new: dict[str, Any] = {}
        for name, state in zip(_names_of(states), states, strict=True):
            if name not in self._measured:
                new.setdefault(name, state)
        return list(new.values())[:count]

    def _choose(self, found: list[Any], count: int) -> list[int]:
        scores = self._cost_model.scores(self.search_task, found) if found else np.empty(0)
        runnable = np.flatnonzero(np.isfinite(scores))
        if not self._diverse or len(runnable) <= count:
            order = np.argsort(-scores[runnable], kind="stable")
            return [int(i) for i in runnable[order][:count]]
        states = [found[i] for i in runnable]
        embeddings, own = self._scored(states)
        adapter = self._cost_model.adapter(str(self.search_task.workload_key))
        if adapter is not None and adapter.ready:
            expected, covariance = adapter.speeds(embeddings, own), adapter.covariance(embeddings, own)
            noise = adapter.noise
        else:
            (expected, covariance), noise = prior(embeddings, own), NOISE
        return [int(runnable[i]) for i in choose_batch(expected, covariance, count, noise)]

    def _scored(self, states: list[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        model = self._cost_model
        embeddings = extract_states(states, model.model.layout)
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


def _names_of(states: list[Any]) -> list[str]:
    """Programs of one task are the same if their steps are; what TVM infers on the way is left out."""
    return [json.dumps(steps) for steps in native_states.steps(states)]
