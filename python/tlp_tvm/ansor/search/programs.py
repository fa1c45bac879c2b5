"""Ansor's programs for a collection: states of a task, drawn, bred or read from records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tlp_tvm import _core
from tlp_tvm.adapting.program_source import SPARE, Prior, ProgramSource
from tlp_tvm.adapting.search_scores import as_weights
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.reading.states import extract_states
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.record_batch import RecordBatch

LAYOUT = "ansor"

_POPULATION = 256
"""Programs that breed; measuring takes far longer than breeding more would gain."""


class StateSource(ProgramSource):
    """Hands out `auto_scheduler.MeasureInput`s."""

    layout = LAYOUT

    def _records(self, files: Sequence[Path]) -> RecordBatch:
        return read_records(files)

    def _inputs_of(self, batch: RecordBatch) -> list[Any]:
        load = load_tvm().auto_scheduler.measure_record.load_record_from_string
        return self._inputs(load(batch.line(i))[0].state for i in range(len(batch)))

    def _random(self, count: int, seed: int) -> list[Any]:
        return self._inputs(sample_states(self.task.task, count, seed))

    def _bred(self, count: int, seed: int) -> list[Any]:
        auto_scheduler = load_tvm().auto_scheduler
        policy = auto_scheduler.SketchPolicy(
            self.task.task,
            _guide(self.expected),
            params={
                "evolutionary_search_population": _POPULATION,
                "sample_init_min_population": _POPULATION // 4,
            },
            seed=seed,
            verbose=0,
        )
        start = policy.sample_initial_population()
        return self._inputs(policy.evolutionary_search(start, 2 * count + SPARE))

    def _block(self, inputs: Sequence[Any]) -> _core.RecordBlock:
        """As unmeasured records."""
        serialize = load_tvm().auto_scheduler._ffi_api.SerializeMeasureInput
        lines = [f'{{"i":{str(serialize(each)).strip()},"r":[[0],0,0,0],"v":"v0.6"}}\n' for each in inputs]
        return _core.read_block("".join(lines).encode(), "<programs>", 1, False, 1)

    def _inputs(self, states: Iterable[Any]) -> list[Any]:
        measure_input = load_tvm().auto_scheduler.MeasureInput
        return [measure_input(self.task.task, state) for state in states]


def _guide(expected: Prior) -> Any:
    """A cost model of TVM that says what a source expects of programs."""
    load_tvm()
    from tvm.auto_scheduler.cost_model.cost_model import PythonBasedModel

    class Guide(PythonBasedModel):  # type: ignore[misc]
        def predict(self, task: Any, states: Any) -> Any:
            embeddings = extract_states(states, FeatureLayout.preset(LAYOUT))
            return as_weights(expected(embeddings))

    return Guide()
