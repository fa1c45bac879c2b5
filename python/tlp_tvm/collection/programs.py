"""Programs of a task that are not measured yet: random ones, evolved ones, or those of another platform."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm import _core
from tlp_tvm.ansor.locate import load_tvm
from tlp_tvm.ansor.records import read_records
from tlp_tvm.ansor.sampling import sample_states
from tlp_tvm.collection.plan import PlannedTask
from tlp_tvm.features import extract_states
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.adaptation import TaskAdapter

LAYOUT = "ansor"

_SPARE = 16
"""Programs that are drawn beyond what is wanted, as some are known already."""

_TRIES = 3
"""Draws in a row without a new program, after which a search space counts as empty."""

_POPULATION = 256
"""Programs that breed; measuring takes far longer than breeding more would gain."""


@dataclass(frozen=True)
class Program:
    """A program to measure."""

    of: ProgramSource
    hash: int
    """Of its sequence of primitives: with the workload it says which program it is, on any platform."""
    input: Any
    """`auto_scheduler.MeasureInput`."""


@dataclass
class ProgramSource:
    """Hands out programs of one task, none twice.

    Attributes:
        task: whose programs.
        known: hashes of programs that are measured or handed out.
        failures_in_a_row: of its latest programs.
    """

    task: PlannedTask
    seed: int
    known: set[int] = field(default_factory=set)
    waiting: list[Program] | None = None
    """Programs of another platform, if those are to be measured."""
    failures_in_a_row: int = 0
    exhausted: bool = False
    _adapter: TaskAdapter = field(default_factory=TaskAdapter)

    def remember(self, files: Sequence[Path]) -> None:
        """Take in what was measured before.

        Args:
            files: records of the task on the platform.
        """
        if not files:
            return
        batch = read_records([str(file) for file in files])
        if not len(batch):
            return
        self.known.update(batch.sequence_hashes.tolist())
        self._learn(batch.encode(FeatureLayout.preset(LAYOUT)), batch.latencies)

    def learn(self, programs: Sequence[Program], latencies: Sequence[float]) -> None:
        """Take in new measurements.

        Args:
            programs: of this task.
            latencies: seconds, infinity for those that failed.
        """
        for latency in latencies:
            self.failures_in_a_row = 0 if np.isfinite(latency) else self.failures_in_a_row + 1
        states = [program.input.state for program in programs]
        self._learn(_embedded(self.task.task, states), np.asarray(latencies, np.float64))

    def expect(self, files: Sequence[Path]) -> None:
        """Hand out the programs of another platform from now on, and no others.

        Args:
            files: its records of the task.
        """
        auto_scheduler = load_tvm().auto_scheduler
        self.waiting = []
        if not files:
            return
        batch = read_records([str(file) for file in files])
        for i in range(len(batch)):
            number = int(batch.sequence_hashes[i])
            state = auto_scheduler.measure_record.load_record_from_string(batch.line(i))[0].state
            self.waiting.append(Program(self, number, auto_scheduler.MeasureInput(self.task.task, state)))

    def take(self, count: int, *, evolved: bool) -> list[Program]:
        """New programs, which count as known from now on.

        Args:
            count: how many at most.
            evolved: whether to breed them from what was measured, if enough was.

        Returns:
            Fewer than `count` where no more are to be found.
        """
        if self.waiting is not None:
            return self._keep_new(self.waiting, count)
        found: list[Program] = []
        for attempt in range(_TRIES):
            if len(found) == count:
                break
            seed = self._seed(len(self.known), attempt)
            if evolved and attempt == 0 and self._adapter.ready:
                states = self._bred(count - len(found), seed)
            else:
                states = sample_states(self.task.task, count - len(found) + _SPARE, seed)
            found += self._keep_new(self._programs(states), count - len(found))
        self.exhausted = not found
        return found

    def _keep_new(self, programs: Sequence[Program], count: int) -> list[Program]:
        new: list[Program] = []
        for program in programs:
            if len(new) == count:
                break
            if program.hash not in self.known:
                self.known.add(program.hash)
                new.append(program)
        return new

    def _programs(self, states: Sequence[Any]) -> list[Program]:
        measure_input = load_tvm().auto_scheduler.MeasureInput
        inputs = [measure_input(self.task.task, state) for state in states]
        hashes = read_inputs(inputs).hashes().tolist() if inputs else []
        return [Program(self, number, each) for number, each in zip(hashes, inputs, strict=True)]

    def _bred(self, count: int, seed: int) -> list[Any]:
        auto_scheduler = load_tvm().auto_scheduler
        policy = auto_scheduler.SketchPolicy(
            self.task.task,
            _guide(self._adapter),
            params={
                "evolutionary_search_population": _POPULATION,
                "sample_init_min_population": _POPULATION // 4,
            },
            seed=seed,
            verbose=0,
        )
        return list(policy.evolutionary_search(policy.sample_initial_population(), 2 * count + _SPARE))

    def _learn(self, embeddings: Any, latencies: Any) -> None:
        self._adapter.learn(embeddings, np.zeros(len(latencies), np.float32), latencies)

    def _seed(self, *numbers: int) -> int:
        text = f"{self.seed} {self.task.id} {numbers}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") % (2**30) + 1


def read_inputs(inputs: Sequence[Any]) -> _core.RecordBlock:
    """`MeasureInput`s as unmeasured records, read natively."""
    serialize = load_tvm().auto_scheduler._ffi_api.SerializeMeasureInput
    lines = [f'{{"i":{str(serialize(each)).strip()},"r":[[0],0,0,0],"v":"v0.6"}}\n' for each in inputs]
    return _core.read_block("".join(lines).encode(), "<programs>", 1, False, 1)


def _embedded(task: Any, states: Sequence[Any]) -> Any:
    measure_input = load_tvm().auto_scheduler.MeasureInput
    block, layout = (
        read_inputs([measure_input(task, state) for state in states]),
        FeatureLayout.preset(LAYOUT),
    )
    out = np.empty((len(block), layout.length, layout.width), np.float32)
    block.encode(layout.encoder, out, 1)
    return out


def _guide(adapter: TaskAdapter) -> Any:
    """A cost model of TVM that knows only what was measured of the task."""
    load_tvm()
    from tvm.auto_scheduler.cost_model.cost_model import PythonBasedModel

    class Guide(PythonBasedModel):  # type: ignore[misc]
        def predict(self, task: Any, states: Any) -> Any:
            embeddings = extract_states(states, FeatureLayout.preset(LAYOUT))
            return np.exp(adapter.speeds(embeddings, np.zeros(len(embeddings), np.float32)))

    return Guide()
