"""A search of one task that breeds programs natively, and chooses itself what to measure.

A round: breeding (`evolution`), leaving out what was measured, choosing (`choosing`), replaying through TVM,
measuring, and teaching. What a program is, and who measures it, is the framework's.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.adapting.choosing import choose_batch
from tlp_tvm.adapting.process import NOISE, prior
from tlp_tvm.adapting.search_scores import SearchScores
from tlp_tvm.breeding.breeder import Breeder
from tlp_tvm.breeding.evolution import evolve
from tlp_tvm.breeding.herd_scores import embedded, model_scores

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


class RoundSearch(ABC):
    """Searches one task, a round at a time.

    Attributes:
        breeder: of the task.
        scores: of bred programs.
        newly: programs that this search measured.
        seconds: that it took.
    """

    def __init__(
        self,
        breeder: Breeder,
        model: SearchScores,
        key: str,
        target: str,
        *,
        population: int,
        seed: int,
        diverse: bool,
    ) -> None:
        """Prepare.

        Args:
            breeder: of the task.
            model: that scores, and learns if it is online.
            key: of the task, to the model.
            target: TVM target of the task.
            population: programs that are bred in a generation.
            seed: of the search.
            diverse: whether programs are chosen by what they may teach too, not by their scores alone.
        """
        self.breeder = breeder
        self.scores = model_scores(model, key, target)
        self.newly, self.seconds = 0, 0.0
        self._model, self._key, self._target = model, key, target
        self._population, self._seed, self._diverse = population, seed, diverse
        self._round, self._growth = 0, 1
        self._programs = self._pool = breeder.stock.joined([])
        self._latencies = np.empty(0)
        self._refused = np.empty(0, np.uint64)

    @property
    @abstractmethod
    def guess(self) -> float:
        """What the task may take as long as no program ran, seconds."""

    @property
    def siblings(self) -> Sequence[RoundSearch]:
        """Searches that take programs from this one, and give theirs."""
        return ()

    @property
    def promised(self) -> float:
        """The lowest latency of a sibling's program that was not tried here, seconds; or infinity."""
        return float("inf")

    def fastest(self, count: int) -> list[tuple[float, str]]:
        """The programs with the lowest latencies.

        Args:
            count: how many.

        Returns:
            The latency of each, seconds, and its steps; those that failed are not among them.
        """
        order = np.argsort(self._latencies, kind="stable")[:count]
        return [
            (float(self._latencies[i]), self._programs.text(int(i)))
            for i in order
            if np.isfinite(self._latencies[i])
        ]

    def _offered(self, count: int) -> _core.Herd:
        """Programs of siblings to be measured first, so many at most."""
        return self.breeder.stock.joined([])

    @abstractmethod
    def _measured(self, programs: list[Any]) -> list[float]:
        """Measure TVM's programs, and keep what was measured: seconds of each, infinity where it failed."""

    @abstractmethod
    def _learn(self, herd: _core.Herd, latencies: list[float]) -> None:
        """Have the model learn what was just measured."""

    @property
    def measured(self) -> int:
        """Programs of the task that were measured, those of earlier logs included."""
        return len(self._programs)

    @property
    def best(self) -> float:
        """Lowest latency so far, seconds; infinity while nothing ran."""
        return float(self._latencies.min(initial=np.inf))

    def one_round(self, count: int) -> int:
        """Find, choose, measure and learn.

        Args:
            count: programs to measure.

        Returns:
            How many were measured; 0 where nothing new is found.
        """
        before, began = self.best, time.monotonic()
        offered = self._offered(count)
        found, wanted = offered, list(range(len(offered)))
        if len(offered) < count:
            bred, scores = self._found(POOL * count)
            wanted += [len(offered) + i for i in self._choose(bred, scores, count + SPARE)]
            found = self.breeder.stock.joined([offered, bred])
        made = self.breeder.replayed(found, wanted, count, self._programs.hashes)
        latencies = self._measured(made.programs)
        chosen, herd = np.array(made.places, np.intp), made.herd
        self._note(herd, latencies)
        ended = wanted.index(made.places[-1]) + 1 if len(made.places) == count else len(wanted)
        passed = np.array(wanted[:ended], np.intp)
        if found is not offered:
            self._pool = found.take(np.setdiff1d(np.arange(len(found)), passed))  # without what TVM refused
        self._refused = np.union1d(self._refused, found.hashes[np.setdiff1d(passed, chosen)])
        if self.best * (1 + GAIN) <= before:
            self._growth = 1
        elif found is not offered:
            self._growth = min(2 * self._growth, MOST_GROWTH)
        if latencies:
            self._learn(herd, latencies)
        self.newly += len(latencies)
        self.seconds += time.monotonic() - began
        return len(latencies)

    def _note(self, programs: _core.Herd, latencies: Sequence[float]) -> None:
        """Take in measurements; of a program that was measured before, the later one counts."""
        latest = np.arange(len(programs))[::-1]
        joined = self.breeder.stock.joined([programs.take(latest), self._programs])
        _, first = np.unique(joined.hashes, return_index=True)
        first = np.sort(first)
        self._programs = joined.take(first)
        values = np.asarray(latencies, np.float64)[latest]
        self._latencies = np.concatenate([values, self._latencies])[first]

    def _found(self, count: int) -> tuple[_core.Herd, NDArray[np.float32]]:
        """Programs that were not measured and their scores, the best first."""
        self._round += 1
        if self._growth > 1:
            self.breeder.grow()
        fastest = np.argsort(self._latencies, kind="stable")
        fastest = fastest[np.isfinite(self._latencies[fastest])]
        best = self._programs.take(fastest[: max(1, int(MEASURED_SHARE * self._population))])
        found = evolve(
            self.breeder,
            self.breeder.distinct([self.breeder.sample, best, self._pool]),
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
        adapter = self._model.adapter(self._key)
        if adapter is not None and adapter.ready:
            expected, covariance = scores, adapter.covariance(embeddings, own)
            noise = adapter.noise
        else:
            (expected, covariance), noise = prior(embeddings, own), NOISE
        return choose_batch(expected, covariance, count, noise)

    def _scored(self, herd: _core.Herd) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        model = self._model.model
        embeddings = embedded(herd, model.layout)
        return embeddings, model.score(embeddings, self._model.platform_for(self._target))
