"""The search of one of MetaSchedule's tasks: bred natively, and TVM replays what is measured."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tlp_tvm import _core
from tlp_tvm.breeding.herd_scores import embedded
from tlp_tvm.breeding.rounds import RoundSearch
from tlp_tvm.breeding.spending import guessed_latency
from tlp_tvm.metaschedule.breeding.trace_stock import TraceStock
from tlp_tvm.metaschedule.loading.targets import cores_of, flags_of
from tlp_tvm.metaschedule.measuring.pools import arguments_of
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.search.cost_model import TLPCostModel
from tlp_tvm.record_batch import RecordBatch

Measure = Callable[[list[Any]], list[float]]
"""`tvm.s_tir.Schedule`s -> seconds of each, infinity where it failed; it keeps what was measured."""


class TraceSearch(RoundSearch):
    """Searches one task, a round at a time."""

    def __init__(
        self,
        task: TraceTask,
        model: TLPCostModel,
        measure: Measure,
        *,
        population: int,
        seed: int,
        diverse: bool = True,
    ) -> None:
        """Prepare.

        Args:
            task: to search.
            model: that scores.
            measure: measures programs of the task.
            population: programs that are bred in a generation.
            seed: of the search.
            diverse: whether programs are chosen by what they may teach too, not by their scores alone.
        """
        how: dict[str, Any] = {"population": population, "seed": seed, "diverse": diverse}
        stock = TraceStock(task, seed, threads=cores_of(task.target))
        super().__init__(stock, model, task.workload_key, flags_of(task.target), **how)
        self.task = task
        self._stock, self._measure = stock, measure

    @functools.cached_property
    def guess(self) -> float:
        """By the task's operations and bytes."""
        return guessed(self.task)

    def know(self, batch: RecordBatch) -> None:
        """Take in what was measured before: it breeds, and is not measured again.

        Args:
            batch: records of the task's network.
        """
        tasks = [i for i, task in enumerate(batch.tasks) if task.workload_key == self.task.workload_key]
        rows = np.flatnonzero(np.isin(batch.task_ids, tasks))
        if len(rows):
            herd = self._stock.add_texts(batch.step_texts(rows))
            self._note(herd, batch.latencies[rows].tolist())

    def _measured(self, programs: list[Any]) -> list[float]:
        return self._measure(programs)

    def _learn(self, herd: _core.Herd, latencies: Sequence[float]) -> None:
        if self._model.online:
            embeddings = embedded(herd, self._model.model.layout)
            self._model.learn(self._key, self._target, embeddings, np.array(latencies, np.float64))


def guessed(task: TraceTask) -> float:
    """What a task may take by its operations and bytes, seconds.

    Args:
        task: that nobody has measured.
    """
    numbers = [math.prod(shape) for _, _, shape in arguments_of(task.module)]
    return guessed_latency(task.flop, 4 * float(np.sum(numbers)))
