"""What a search framework gives to everything else, and the one place that finds frameworks by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.program_source import Prior, ProgramSource
from tlp_tvm.machine.checks import Check
from tlp_tvm.measuring.child import Outcome
from tlp_tvm.measuring.fleet import Fleet
from tlp_tvm.measuring.pool import MeasureSettings, MeasuringPool
from tlp_tvm.planned_task import PlannedTask
from tlp_tvm.record_batch import RecordBatch

DEFAULT = "ansor"
"""What is meant where nothing says it; files of before there were others do not."""

FRAMEWORKS = {
    "ansor": "tlp_tvm.ansor.framework",
    "metaschedule": "tlp_tvm.metaschedule.framework",
}
"""Name -> the module with its `FRAMEWORK`; nothing of a framework is imported before it is asked for."""

OnErrors = Literal["raise", "skip"]
Tell = Callable[[str], None]
"""Is told in words what is going on."""


@dataclass(frozen=True)
class Contender:
    """A cost model and the rounds of its search.

    Attributes:
        model: one of its framework's (`Framework.contenders`).
        per_round: programs measured before it learns and searches again.
        population: programs that breed in a round.
    """

    model: str
    per_round: int
    population: int

    @property
    def name(self) -> str:
        """As the command line reads it."""
        return f"{self.model}:{self.per_round}:{self.population}"


class Pool(Protocol):
    """Children that compile and time programs; a context manager. See `measuring.pool.MeasuringPool`."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def build(self, inputs: Sequence[Any]) -> list[tuple[int, Outcome]]:
        """Compile programs side by side."""
        ...

    def run_all(
        self, built: Sequence[tuple[int, Outcome]], inputs: Sequence[Any]
    ) -> Iterator[tuple[int, Outcome]]:
        """Time what compiled, one program after the other."""
        ...


class Framework(Protocol):
    """A search framework. What one lacks it refuses by name, in a sentence."""

    name: str
    title: str
    """For people."""
    population: int
    """Programs that breed in a round of a tuning, unless it says otherwise."""
    default_model: str
    """The shipped model of its programs."""
    log: str
    """Name of the record file in the folder of a tuning."""
    layouts: tuple[str, ...]
    """Preset layouts of its programs; the last one has the framework's name."""
    has_store_rows: bool
    """Whether `store_rows` gives any."""

    # Whether it works here.

    def is_here(self) -> bool:
        """Whether this environment has a TVM with it; nothing is loaded."""
        ...

    def checks(self) -> list[Check]:
        """Whether all that it needs works."""
        ...

    def tvm_version(self) -> str:
        """Of the loaded TVM."""
        ...

    # Targets.

    def target(self, text: str, *, here: bool) -> Any:
        """A TVM target to measure on; this machine's CPU for an empty text.

        Raises:
            TuningError: no such target, or none of this machine where `here` asks for that.
        """
        ...

    def cores(self, target: Any) -> int:
        """How many cores a target names, or else this process has."""
        ...

    def platform_name(self, target: Any) -> str:
        """A label for measurements of a target on this machine."""
        ...

    # Records.

    def wrote(self, begin: bytes) -> bool:
        """Whether a record file that begins so has its records."""
        ...

    def read(self, files: Sequence[str], errors: OnErrors, threads: int) -> RecordBatch:
        """All records of files; see `records.detect.read_records`."""
        ...

    def batches(
        self, files: Sequence[str], errors: OnErrors, threads: int, batch_size: int
    ) -> Iterator[RecordBatch]:
        """The records of files in batches, memory bounded; see `records.detect.iter_records`."""
        ...

    def programs(self, text: bytes, threads: int) -> RecordBatch:
        """Programs from their text as a dataset keeps it, a line each; without task and result.

        Raises:
            RecordError: one is damaged.
        """
        ...

    def record(self, task: PlannedTask, program: Any, outcome: Outcome, compiled_s: float) -> str:
        """A measured program as a line that the framework reads."""
        ...

    def store_rows(
        self,
        tasks: Mapping[str, Mapping[str, int]],
        targets: Sequence[str],
        records: Mapping[str, Sequence[str]],
        tell: Tell,
    ) -> Iterator[tuple[str, NDArray[np.float32], NDArray[np.int32]]]:
        """TVM's per-store features of recorded programs, which takes minutes a network.

        Args:
            tasks: workload key -> the networks that have it.
            targets: that the networks may have been split for.
            records: workload key -> its programs' records.
            tell: see `Tell`.

        Yields:
            A workload key, the (S, 164) rows of its programs, and the (n,) rows of each program. Tasks of
            networks that are not built in are left out.
        """
        ...

    # Tasks and programs.

    def plan(self, networks: Sequence[str], target: Any, tell: Tell, split_for: Any) -> Sequence[PlannedTask]:
        """The tasks of networks, each once.

        Args:
            networks: built-in names, or files.
            target: to measure on.
            tell: see `Tell`.
            split_for: target that the networks are split for, if another.

        Raises:
            NetworkError: no such network.
        """
        ...

    def split_for(self, noted: str | None, files: Sequence[Path]) -> Any:
        """The target that the networks of another platform's programs were split for.

        Args:
            noted: by their collection.
            files: their records, where it notes nothing.
        """
        ...

    def source(self, task: PlannedTask, seed: int, prior: Prior | None = None) -> ProgramSource:
        """What hands out programs of a task.

        Args:
            task: whose programs.
            seed: of the sampling and the evolution.
            prior: a model that leads the evolution together with what was measured.
        """
        ...

    # Measuring, here and elsewhere.

    def pool(
        self, how: MeasureSettings, output: IO[Any], check: Callable[[], None], fleet: Fleet | None
    ) -> Pool:
        """What measures programs.

        Raises:
            CollectionError: it cannot measure on other machines, and is asked to.
        """
        ...

    def tracker(self, host: str, port: int) -> Any:
        """TVM's RPC tracker, running; its `port` may be another, and `proc` is its process.

        Raises:
            OSError: no port is free.
            RuntimeError: the same, as some TVMs say it.
        """
        ...

    def server(self, host: str, port: int, key: str, tracker: tuple[str, int]) -> Any:
        """TVM's RPC server, running, with `port` and `proc`."""
        ...

    # Searches side by side.

    @property
    def contenders(self) -> Mapping[str, tuple[int, int]]:
        """Cost models by name, each with its users' programs a round and programs that breed."""
        ...

    def measuring(
        self,
        how: MeasureSettings,
        output: IO[Any],
        note: Callable[[float, Any], None],
        check: Callable[[], None],
    ) -> AbstractContextManager[MeasuringPool]:
        """What measures the programs of searches that take turns.

        Args:
            how: to compile and time.
            output: a real file for what the children print.
            note: told the latency of each program, seconds, infinity where it failed; and the program.
            check: called between programs; what it raises ends the search.
        """
        ...

    def searcher(
        self,
        contender: Contender,
        task: Any,
        seed: int,
        trials: int,
        scorer: Any,
        pool: Any,
        spent: dict[str, float],
    ) -> Callable[[int], Any]:
        """A search of a task: takes how many programs to measure in a round, and does it.

        Args:
            contender: whose search it is.
            task: a `PlannedTask` of this framework.
            seed: of the search, any non-negative integer.
            trials: programs that it will measure in all, at most.
            scorer: the loaded model of those of "tlp"; None if there are none.
            pool: what `measuring` gave.
            spent: seconds by part; scoring and learning are added.
        """
        ...

    # Tuning a whole network.

    def tuner(self, settings: Any, model: Any, observer: Any) -> Any:
        """One network, ready to be tuned (`tuning.tuner_protocol.Tuner`); nothing is written yet.

        Args:
            settings: `tuning.tune_settings.TuneSettings`.
            model: what scores: as `tlp_tvm.load_model` takes it, a model, or one that it has itself by name.
            observer: `tuning.tune_observer.TuneObserver`.

        Raises:
            TuningError: no such target, or settings that it does not have.
            NetworkError: no such network.
            ModelFileError: the model cannot be read, or is of another framework.
        """
        ...

    def parse_shapes(self, texts: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
        """Shapes of inputs that a network's file leaves open, from "NAME=1,3,224,224".

        Raises:
            NetworkError: a text says none.
        """
        ...

    # Throughput.

    def bench_extract(self, task: str, states: int, fresh: int, seconds: float, tell: Tell) -> Sequence[Any]:
        """Rates of extraction beside the alternatives; see `bench.extract_result`.

        Raises:
            NetworkError: there is no such task.
        """
        ...

    def bench_score(
        self, task: str, counts: tuple[int, int], how: Mapping[str, Any], tell: Tell
    ) -> Sequence[Any]:
        """Rates of scoring beside TVM's own model; see `bench.score_result`.

        Args:
            task: an operator.
            counts: programs for a CPU and for a GPU; 0 leaves one out.
            how: `model`, `threads` and `rounds`.
            tell: see `Tell`.

        Raises:
            NetworkError: there is no such task.
        """
        ...


def framework_here() -> Framework:
    """The framework of this environment's TVM; the default one where there is none, or several."""
    found = [framework_named(name) for name in FRAMEWORKS if framework_named(name).is_here()]
    return next(iter(found), framework_named(DEFAULT))


def framework_named(name: str) -> Framework:
    """The framework of that name, one of `FRAMEWORKS`."""
    found: Framework = importlib.import_module(FRAMEWORKS[name]).FRAMEWORK
    return found
