"""Ansor's programs for a collection: states of a task, drawn, bred or read from records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm import _core
from tlp_tvm.adapting.program_source import SPARE, Prior, Program, ProgramSource
from tlp_tvm.adapting.search_scores import as_weights
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.reading.states import extract_states
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.layout import FeatureLayout

LAYOUT = "ansor"

_POPULATION = 256
"""Programs that breed; measuring takes far longer than breeding more would gain."""


class StateSource(ProgramSource):
    """Hands out `auto_scheduler.MeasureInput`s."""

    def _read(self, files: Sequence[Path]) -> tuple[list[int], Any, Any]:
        batch = read_records([str(file) for file in files])
        embeddings = batch.encode(FeatureLayout.preset(LAYOUT))
        return batch.sequence_hashes.tolist(), embeddings, batch.latencies

    def _recorded(self, files: Sequence[Path]) -> list[Program]:
        auto_scheduler = load_tvm().auto_scheduler
        batch = read_records([str(file) for file in files])
        programs = []
        for i in range(len(batch)):
            state = auto_scheduler.measure_record.load_record_from_string(batch.line(i))[0].state
            measure_input = auto_scheduler.MeasureInput(self.task.task, state)
            programs.append(Program(self, int(batch.sequence_hashes[i]), measure_input))
        return programs

    def _random(self, count: int, seed: int) -> list[Program]:
        return self._programs(sample_states(self.task.task, count, seed))

    def _bred(self, count: int, seed: int) -> list[Program]:
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
        return self._programs(list(policy.evolutionary_search(start, 2 * count + SPARE)))

    def _embedded(self, inputs: Sequence[Any]) -> Any:
        block, layout = _read_inputs(inputs), FeatureLayout.preset(LAYOUT)
        out = np.empty((len(block), layout.length, layout.width), np.float32)
        block.encode(layout.encoder, out, 1)
        return out

    def _programs(self, states: Sequence[Any]) -> list[Program]:
        measure_input = load_tvm().auto_scheduler.MeasureInput
        inputs = [measure_input(self.task.task, state) for state in states]
        hashes = _read_inputs(inputs).hashes().tolist() if inputs else []
        return [Program(self, number, each) for number, each in zip(hashes, inputs, strict=True)]


def _read_inputs(inputs: Sequence[Any]) -> _core.RecordBlock:
    """`MeasureInput`s as unmeasured records, read natively."""
    serialize = load_tvm().auto_scheduler._ffi_api.SerializeMeasureInput
    lines = [f'{{"i":{str(serialize(each)).strip()},"r":[[0],0,0,0],"v":"v0.6"}}\n' for each in inputs]
    return _core.read_block("".join(lines).encode(), "<programs>", 1, False, 1)


def _guide(expected: Prior) -> Any:
    """A cost model of TVM that says what a source expects of programs."""
    load_tvm()
    from tvm.auto_scheduler.cost_model.cost_model import PythonBasedModel

    class Guide(PythonBasedModel):  # type: ignore[misc]
        def predict(self, task: Any, states: Any) -> Any:
            embeddings = extract_states(states, FeatureLayout.preset(LAYOUT))
            return as_weights(expected(embeddings))

    return Guide()
