"""The search of one of Ansor's tasks, in the place of TVM's SketchPolicy in its task scheduler."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm import _core
from tlp_tvm.ansor.breeding.task_stock import TaskStock
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.breeding.rounds import BATCH, RoundSearch
from tlp_tvm.breeding.spending import guessed_latency
from tlp_tvm.latency import latency_of


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
        super().__init__(TaskStock(task, seed), cost_model, str(task.workload_key), str(task.target), **how)
        self.search_task = task
        self._cost_model = cost_model
        self._options = options
        self._last: tuple[list[Any], list[Any]] = ([], [])
        for log in logs:
            self._read(log)

    @functools.cached_property
    def guess(self) -> float:
        """By the task's operations and bytes."""
        dag = self.search_task.compute_dag
        sizes = [math.prod(int(extent) for extent in tensor.shape) for tensor in dag.tensors]
        return guessed_latency(float(dag.flop_ct), 4 * float(np.sum(sizes)))

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
