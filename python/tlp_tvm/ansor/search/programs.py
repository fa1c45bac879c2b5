"""Ansor's programs for a collection: states of a task, drawn, bred or read from records."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.adapting.program_source import SPARE, ModelPrior, ProgramSource
from tlp_tvm.ansor.breeding.task_stock import TaskStock
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.reading.store_rows import rows_of_states
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.ansor.search.zero_shot import FAVOURITES, JUDGED
from tlp_tvm.breeding.evolution import evolve
from tlp_tvm.breeding.herd_scores import scores_by
from tlp_tvm.breeding.second_opinion import SecondOpinion
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.record_batch import RecordBatch

LAYOUT = "ansor"


class StateSource(ProgramSource):
    """Hands out `auto_scheduler.MeasureInput`s."""

    layout = LAYOUT

    def _records(self, files: Sequence[Path]) -> RecordBatch:
        return read_records(files)

    def _inputs_of(self, batch: RecordBatch, rows: NDArray[np.int64]) -> list[Any]:
        load = load_tvm().auto_scheduler.measure_record.load_record_from_string
        return self._inputs(load(batch.line(int(i)))[0].state for i in rows)

    def _random(self, count: int, seed: int) -> list[Any]:
        return self._inputs(sample_states(self.task.task, count, seed))

    def _bred(self, count: int, seed: int) -> list[Any]:
        task = self.task.task
        stock = TaskStock(task, seed)
        scores = scores_by(FeatureLayout.preset(LAYOUT), self.expected)
        opinion = None
        if isinstance(self.prior, ModelPrior) and not self._adapter.ready:
            opinion = SecondOpinion.by(
                self.prior.model, self.prior.platform, functools.partial(rows_of_states, task)
            )
        wanted = len(self.known) + (count + SPARE if opinion is None else FAVOURITES)
        found = evolve(stock, stock.sample, scores, population=self.population, count=wanted, seed=seed)
        hashes = found.herd.sequence_hashes.tolist()
        new = [i for i, number in enumerate(hashes) if number not in self.known]
        if opinion is not None:
            as_bred = functools.partial(stock.replayer.all_as_bred, found.herd)
            judged = max(JUDGED, count + SPARE)
            new, count = [i for i, _ in opinion.best(found, new, as_bred, judged)], count + SPARE
        return self._inputs(state for _, state in stock.replayer.programs(found.herd, new, count))

    def _block(self, inputs: Sequence[Any]) -> _core.RecordBlock:
        """As unmeasured records."""
        serialize = load_tvm().auto_scheduler._ffi_api.SerializeMeasureInput
        lines = [f'{{"i":{str(serialize(each)).strip()},"r":[[0],0,0,0],"v":"v0.6"}}\n' for each in inputs]
        return _core.read_block("".join(lines).encode(), "<programs>", 1, False, 1)

    def _inputs(self, states: Iterable[Any]) -> list[Any]:
        measure_input = load_tvm().auto_scheduler.MeasureInput
        return [measure_input(self.task.task, state) for state in states]
