"""MetaSchedule's programs for a collection: traces of a task, drawn, bred or read from records."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm import _core
from tlp_tvm.adapting.program_source import SPARE, Prior, ProgramSource
from tlp_tvm.adapting.search_scores import as_weights
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.measuring.pools import Measurable
from tlp_tvm.metaschedule.measuring.work import Serialized
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.reading.records import read_batch
from tlp_tvm.metaschedule.reading.traces import as_array, extract_traces, reader
from tlp_tvm.record_batch import RecordBatch

LAYOUT = "metaschedule"

_POPULATION = 64
"""Programs that breed. Breeding one costs TVM 5 to 50 ms, as every child's trace is applied anew."""

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

    def _inputs_of(self, batch: RecordBatch) -> list[Any]:
        return [TraceProgram(self.task, text) for text in batch.step_texts(np.arange(len(batch)))]

    def _random(self, count: int, seed: int) -> list[Any]:
        return self._inputs(_sampled(self._context(seed, count), count))

    def _bred(self, count: int, seed: int) -> list[Any]:
        load_tvm()
        from tvm_ffi import get_global_func

        context = self._context(seed, _POPULATION // 2, _guide(self.expected))
        evolve = get_global_func("s_tir.meta_schedule.SearchStrategyEvolutionarySearchEvolveWithCostModel")
        start = _sampled(context, _POPULATION // 2)
        return self._inputs(evolve(context.search_strategy, start, count + SPARE))

    def _block(self, inputs: Sequence[Any]) -> _core.TraceBlock:
        text = "".join(f"{program.trace}\n" for program in inputs)
        return _core.read_traces(text.encode(), "<programs>", 1, "trace", False)

    def _context(self, seed: int, least: int, model: Any = None) -> Any:
        """A search of TVM's that is ready to draw and breed."""
        load_tvm()
        from tvm.s_tir import meta_schedule as ms

        context = ms.TuneContext(
            mod=self.task.module,
            target=self.task.target,
            space_generator="post-order-apply",
            search_strategy=ms.search_strategy.EvolutionarySearch(
                population_size=_POPULATION, init_min_unmeasured=least, genetic_num_iters=_GENERATIONS
            ),
            task_name=self.task.id,
            rand_state=seed,
            num_threads=1,
        )
        designs = context.generate_design_space()
        model = model or ms.cost_model.RandomModel()
        context.pre_tuning(1 << 30, 64, designs, ms.database.MemoryDatabase(), model)
        return context

    def _inputs(self, schedules: Any) -> list[Any]:
        schedules = list(schedules)
        if not schedules:
            return []
        array = as_array(schedules)
        texts = reader().json(array.__chandle__())
        return [
            TraceProgram(self.task, text, schedule) for text, schedule in zip(texts, schedules, strict=True)
        ]


def applied(module: Any, trace: str) -> Any:
    """The schedule that a recorded trace leads to.

    Args:
        module: what is computed.
        trace: as the JSON of a record.
    """
    load_tvm()
    from tvm.s_tir import Schedule, Trace

    schedule = Schedule(module)
    Trace.apply_json_to_schedule(json.loads(trace), schedule)
    return schedule


def _sampled(context: Any, count: int) -> Any:
    """Programs as a search begins with, postprocessed, those that fail left out."""
    load_tvm()
    from tvm_ffi import get_global_func

    sample = get_global_func("s_tir.meta_schedule.SearchStrategyEvolutionarySearchSampleInitPopulation")
    return sample(context.search_strategy, count)


def _guide(expected: Prior) -> Any:
    """A cost model of TVM that says what a source expects of programs."""
    load_tvm()
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.cost_model import PyCostModel

    @derived_object
    class Guide(PyCostModel):  # type: ignore[misc]
        def predict(self, _context: Any, candidates: Any) -> Any:
            embeddings = extract_traces(candidates, FeatureLayout.preset(LAYOUT))
            return np.asarray(as_weights(expected(embeddings)), np.float64)

        def load(self, _path: str) -> None:
            """Nothing to load."""

        def save(self, _path: str) -> None:
            """Nothing to save."""

        def update(self, _context: Any, _candidates: Any, _results: Any) -> None:
            """Progress is reported elsewhere."""

    return Guide()
