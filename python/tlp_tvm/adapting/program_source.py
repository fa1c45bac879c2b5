"""Programs of a task to measure next: random, evolved, or from another platform."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.adapting.adaptation import TaskAdapter
from tlp_tvm.embedding import Embedding
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.planned_task import PlannedTask
from tlp_tvm.record_batch import RecordBatch

if TYPE_CHECKING:
    from tlp_tvm.adapting.search_scores import Scorer

SPARE = 16
"""Programs that are drawn beyond what is wanted, as some are known already."""

Prior = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""(n, L, E) embeddings -> (n,) scores of a model."""


@dataclass(frozen=True)
class ModelPrior:
    """A model's head, or the mean of all, as a `Prior`."""

    model: Scorer
    platform: str

    def __call__(self, embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
        """Score programs."""
        return self.model.score(embeddings, self.platform)


POPULATION = 1024
"""Programs that are bred in a generation; measuring takes far longer than breeding more would gain."""

_TRIES = 3
"""Draws in a row without a new program, after which a search space counts as empty."""


class NativeBlock(Protocol):
    """Programs in the native core."""

    def __len__(self) -> int: ...

    def hashes(self) -> NDArray[np.uint64]:
        """(N,) an identity of each program within its task."""
        ...

    def encode(self, encoder: _core.Encoder, out: Embedding, threads: int, /) -> Any:
        """Write (N, L, E)."""
        ...


@dataclass(frozen=True)
class Program:
    """A program to measure."""

    of: ProgramSource
    hash: int
    """Of its sequence of primitives: with the workload it says which program it is, on any platform."""
    input: Any
    """What the framework's pool builds and runs."""


@dataclass
class ProgramSource(abc.ABC):
    """Hands out programs of one task, none twice; a framework says how they are read, drawn and bred.

    An input is a program as the framework's pool takes it.

    Attributes:
        task: whose programs.
        prior: the model that leads the evolution together with what was measured; None for no model.
        known: hashes of programs that are measured or handed out.
        failures_in_a_row: of its latest programs.
        population: programs that are bred in a generation, where they are bred natively.
    """

    layout: ClassVar[str]
    """Name of the preset layout that embeds them."""

    task: PlannedTask
    seed: int
    prior: Prior | None = None
    known: set[int] = field(default_factory=set)
    waiting: list[Program] | None = None
    """Programs of another platform, if those are to be measured."""
    failures_in_a_row: int = 0
    population: int = POPULATION
    exhausted: bool = False
    _adapter: TaskAdapter = field(default_factory=TaskAdapter)

    def remember(self, files: Sequence[Path]) -> None:
        """Take in what was measured before.

        Args:
            files: records of the task on the platform.
        """
        if not files:
            return
        batch = self._records(files)
        if len(batch):
            self.known.update(batch.sequence_hashes.tolist())
            self._learn(batch.encode(FeatureLayout.preset(self.layout), threads=1), batch.latencies)

    def learn(self, programs: Sequence[Program], latencies: Sequence[float]) -> None:
        """Take in new measurements.

        Args:
            programs: of this task.
            latencies: seconds, infinity for those that failed.
        """
        for latency in latencies:
            self.failures_in_a_row = 0 if np.isfinite(latency) else self.failures_in_a_row + 1
        embeddings = self._embedded([program.input for program in programs])
        self._learn(embeddings, np.asarray(latencies, np.float64))

    def expect(self, files: Sequence[Path]) -> None:
        """Hand out the programs of other platforms from now on, each once, and no others.

        Args:
            files: their records of the task.
        """
        self.waiting = []
        if files:
            batch = self._records(files)
            rows = np.arange(len(batch))
            programs = self._programs(self._inputs_of(batch, rows), batch.sequence_hashes)
            self.waiting = list({program.hash: program for program in programs}.values())

    def fastest(self, batches: Sequence[RecordBatch], count: int) -> list[Program]:
        """The fastest programs that records have of the task; they do not count as known.

        Args:
            batches: records of any tasks.
            count: how many of each target of theirs.
        """
        found: dict[int, Program] = {}
        for batch in batches:
            own = [i for i, task in enumerate(batch.tasks) if task.workload_key == self.task.workload_key]
            for i in own:
                rows = np.flatnonzero((batch.task_ids == i) & np.isfinite(batch.latencies))
                rows = rows[np.argsort(batch.latencies[rows], kind="stable")][:count]
                hashes = batch.sequence_hashes[rows]
                found |= {each.hash: each for each in self._programs(self._inputs_of(batch, rows), hashes)}
        return list(found.values())

    def waiting_embeddings(self) -> Any:
        """(n, L, E) embeddings of the programs of another platform."""
        return self._embedded([program.input for program in self.waiting or ()])

    def take(self, count: int, *, evolved: bool) -> list[Program]:
        """New programs, which count as known from now on.

        Args:
            count: how many at most.
            evolved: whether to breed them, if there is a model or enough was measured to lead that.

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
            if evolved and attempt == 0 and (self._adapter.ready or self.prior is not None):
                inputs = self._bred(count - len(found), seed)
            else:
                inputs = self._random(count - len(found) + SPARE, seed)
            hashes = self._block(inputs).hashes() if inputs else ()
            found += self._keep_new(self._programs(inputs, hashes), count - len(found))
        self.exhausted = not found
        return found

    def expected(self, embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
        """What leads the evolution.

        Args:
            embeddings: (n, L, E).

        Returns:
            (n,) higher is better.
        """
        scores = self._prior_scores(embeddings)
        return self._adapter.speeds(embeddings, scores) if self._adapter.ready else scores

    @abc.abstractmethod
    def _records(self, files: Sequence[Path]) -> RecordBatch:
        """All records of files."""

    @abc.abstractmethod
    def _inputs_of(self, batch: RecordBatch, rows: NDArray[np.int64]) -> list[Any]:
        """The programs of some records, to be measured again."""

    @abc.abstractmethod
    def _random(self, count: int, seed: int) -> list[Any]:
        """Inputs drawn at random."""

    @abc.abstractmethod
    def _bred(self, count: int, seed: int) -> list[Any]:
        """Inputs that an evolution finds, led by `expected`."""

    @abc.abstractmethod
    def _block(self, inputs: Sequence[Any]) -> NativeBlock:
        """Inputs, read natively."""

    def _embedded(self, inputs: Sequence[Any]) -> Embedding:
        block, layout = self._block(inputs), FeatureLayout.preset(self.layout)
        out = np.empty((len(block), layout.length, layout.width), np.float32)
        block.encode(layout.encoder, out, 1)
        return out

    def _programs(self, inputs: Sequence[Any], hashes: Iterable[int]) -> list[Program]:
        return [Program(self, int(number), each) for number, each in zip(hashes, inputs, strict=True)]

    def _keep_new(self, programs: Sequence[Program], count: int) -> list[Program]:
        new: list[Program] = []
        for program in programs:
            if len(new) == count:
                break
            if program.hash not in self.known:
                self.known.add(program.hash)
                new.append(program)
        return new

    def _learn(self, embeddings: Any, latencies: Any) -> None:
        self._adapter.learn(embeddings, self._prior_scores(embeddings), latencies)

    def _prior_scores(self, embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.zeros(len(embeddings), np.float32) if self.prior is None else self.prior(embeddings)

    def _seed(self, *numbers: int) -> int:
        text = f"{self.seed} {self.task.id} {numbers}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") % (2**30) + 1


def prior_of(model: Scorer, target: str) -> ModelPrior:
    """A model as the prior of an evolution: its head for a target, or the mean of all.

    Args:
        model: that scores.
        target: in flags, as `Framework.flags_of` gives them.
    """
    from tlp_tvm.model.scoring import platform_or_mean

    return ModelPrior(model, platform_or_mean(model, target))
