"""MetaSchedule's programs for a collection: traces of a task, drawn, bred or read from records."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.adapting.program_source import SPARE, ProgramSource
from tlp_tvm.breeding.evolution import evolve
from tlp_tvm.breeding.herd_scores import scores_by
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.metaschedule.breeding.trace_stock import TraceStock
from tlp_tvm.metaschedule.measuring.pools import Measurable
from tlp_tvm.metaschedule.measuring.work import Serialized
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.reading.records import read_batch
from tlp_tvm.metaschedule.reading.traces import applied, texts_of
from tlp_tvm.metaschedule.search.tvms_sample import LAYOUT, drawn, ready_search
from tlp_tvm.metaschedule.search.zero_shot import ASKED, opinion_of
from tlp_tvm.record_batch import RecordBatch

_GENERATIONS = 2


@dataclass
class TraceProgram:
    """A program of a task, with its schedule or without.

    Attributes:
        task: whose program.
        trace: it, as the JSON of a record.
        made: its schedule, if there is one already.
    """

    task: TraceTask
    trace: str
    made: Any = None

    @property
    def key(self) -> str:
        """Of its task."""
        return self.task.workload_key

    @functools.cached_property
    def schedule(self) -> Any:
        """`tvm.s_tir.Schedule` that its trace leads to."""
        return self.made or applied(self.task.module, self.trace)

    def serialized(self) -> Serialized:
        """For a child that measures."""
        return Measurable(self.key, self.schedule.mod, self.task.target).serialized()


class TraceSource(ProgramSource):
    """Hands out `TraceProgram`s."""

    layout = LAYOUT
    task: TraceTask

    def _records(self, files: Sequence[Path]) -> RecordBatch:
        return read_batch(files)

    def _inputs_of(self, batch: RecordBatch, rows: NDArray[np.int64]) -> list[Any]:
        return [TraceProgram(self.task, text) for text in batch.step_texts(rows)]

    def _random(self, count: int, seed: int) -> list[Any]:
        return self._inputs(drawn(ready_search(self.task, seed, count), count))

    def _bred(self, count: int, seed: int) -> list[Any]:
        stock = TraceStock(self.task, seed, threads=this_cpu().cores)
        scores = scores_by(FeatureLayout.preset(LAYOUT), self.expected)
        opinion = None if self._adapter.ready else opinion_of(self.task, self.prior)
        wanted = len(self.known) + (count + SPARE if opinion is None else ASKED)
        how: dict[str, Any] = {"population": self.population, "seed": seed, "generations": _GENERATIONS}
        found = evolve(stock, stock.sample, scores, count=wanted, **how)
        if opinion is not None:
            programs_of = functools.partial(stock.replayer.all_programs, found.herd)
            best = opinion.best(found, range(len(found.herd)), programs_of, wanted)
            return self._inputs(schedule for _, schedule in best)
        new: list[Any] = []
        for i in range(len(found.herd)):
            if len(new) == count:
                break
            schedule = stock.replayer.program(found.herd, i)
            made = self._inputs([] if schedule is None else [schedule])
            new += [] if self.known.issuperset(self._block(made).hashes().tolist()) else made
        return new

    def _block(self, inputs: Sequence[Any]) -> _core.TraceBlock:
        text = "".join(f"{program.trace}\n" for program in inputs)
        return _core.read_traces(text.encode(), "<programs>", 1, "trace", False)

    def _inputs(self, schedules: Any) -> list[Any]:
        schedules = list(schedules)
        if not schedules:
            return []
        pairs = zip(texts_of(schedules), schedules, strict=True)
        return [TraceProgram(self.task, text, schedule) for text, schedule in pairs]
