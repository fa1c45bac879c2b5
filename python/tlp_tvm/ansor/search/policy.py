"""The search of one of Ansor's tasks, in the place of TVM's SketchPolicy in its task scheduler."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tlp_tvm import _core
from tlp_tvm.ansor.breeding.task_stock import TaskStock
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.siblings import Stages, Step, steps_for_sibling
from tlp_tvm.breeding.rounds import BATCH, RoundSearch
from tlp_tvm.breeding.spending import guessed_latency
from tlp_tvm.latency import latency_of


class _Offer(NamedTuple):
    """A sibling's program, and the task and the program that it was first."""

    latency: float
    text: str
    sibling: ChoosingPolicy
    origin: tuple[str, str]


class ChoosingPolicy(RoundSearch):
    """Searches one task, a round at a time.

    Attributes:
        search_task: `auto_scheduler.SearchTask`.
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
        how: dict[str, Any] = {"population": population, "seed": seed, "diverse": diverse}
        self._stock = TaskStock(task, seed)
        super().__init__(self._stock, cost_model, str(task.workload_key), str(task.target), **how)
        self.search_task = task
        self._cost_model = cost_model
        self._options = options
        self._last: tuple[list[Any], list[Any]] = ([], [])
        self._stages = Stages(task)
        self._siblings: list[ChoosingPolicy] = []
        self._tried: set[tuple[str, str]] = set()
        self._origins: dict[str, tuple[str, str]] = {}
        for log in logs:
            self._read(log)

    @functools.cached_property
    def guess(self) -> float:
        """By the task's operations and bytes."""
        dag = self.search_task.compute_dag
        sizes = [math.prod(int(extent) for extent in tensor.shape) for tensor in dag.tensors]
        return guessed_latency(float(dag.flop_ct), 4 * float(np.sum(sizes)))

    def meet(self, others: Sequence[ChoosingPolicy]) -> None:
        """Take programs of siblings from now on, and give them this task's.

        Args:
            others: all searches of the network.
        """
        self._siblings = [each for each in others if each is not self and each.is_sibling_of(self)]

    def is_sibling_of(self, other: ChoosingPolicy) -> bool:
        """Whether programs of one are programs of the other.

        Args:
            other: search of another task.
        """
        same = self._key != other._key and self._target == other._target
        return same and self._stages.shared_with(other._stages) > 0

    @property
    def siblings(self) -> Sequence[RoundSearch]:
        """Those that `meet` found."""
        return self._siblings

    @property
    def promised(self) -> float:
        """By the fastest program of each sibling."""
        return min((offer.latency for offer in self._offers()), default=np.inf)

    def _offers(self) -> list[_Offer]:
        """The fastest program of each sibling, if it was not tried here."""
        found = [
            _Offer(latency, text, sibling, sibling._origins.get(text, (sibling._key, text)))
            for sibling in self._siblings
            for latency, text in sibling.fastest(1)
        ]
        return [offer for offer in found if offer.origin not in self._tried]

    def _offered(self, count: int) -> _core.Herd:
        """Those of the offers that are faster than what is known, the fastest first."""
        offers = [offer for offer in self._offers() if offer.latency < self.best]
        herds = []
        for offer in sorted(offers, key=lambda each: each.latency)[:count]:
            self._tried.add(offer.origin)
            offer.sibling._tried.add(offer.origin)
            for herd in self._from_sibling(json.loads(offer.text), offer.sibling._stages):
                self._origins[herd.text(0)] = offer.origin
                herds.append(herd)
        offered = self.breeder.distinct(herds)
        return offered.take(np.flatnonzero(~np.isin(offered.hashes, self._programs.hashes)))

    def _from_sibling(self, steps: list[Step], stages: Stages) -> list[_core.Herd]:
        """A sibling's program as one of this task; none where TVM refuses it."""
        sample = self.breeder.sample
        example = json.loads(sample.text(0)) if len(sample) else []
        moved = steps_for_sibling(steps, stages, self._stages, example)
        state = None if moved is None else self._stock.replayer.of_steps(json.dumps(moved))
        return [] if state is None else [self._stock.add([state])]

    def continue_search_one_round(self, count: int, _measurer: Any = None) -> tuple[list[Any], list[Any]]:
        """Find, choose, measure and learn.

        Args:
            count: programs to measure.

        Returns:
            TVM's `MeasureInput`s and `MeasureResult`s; empty where nothing new is found.
        """
        self.one_round(count)
        return self._last

    def _measured(self, programs: list[Any]) -> list[float]:
        self._last = measure(self.search_task, programs, self._options)
        return [latency_of(result) for result in self._last[1]]

    def _learn(self, herd: _core.Herd, latencies: list[float]) -> None:
        self._cost_model.update(*self._last)

    def _read(self, log: Path) -> None:
        batch = read_records(log)
        key = str(self.search_task.workload_key)
        tasks = [i for i, task in enumerate(batch.tasks) if task.workload_key == key]
        rows = np.flatnonzero(np.isin(batch.task_ids, tasks))
        lines = "".join(batch.line(int(row)) for row in rows)
        herd = self.breeder.stock.add_records(_core.read_block(lines.encode(), str(log), 1, False, 1))
        self._note(herd, batch.latencies[rows].tolist())


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
