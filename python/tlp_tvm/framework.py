"""The Protocol that a search framework implements, and the one place that finds frameworks by name."""

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
"""The framework of files that name none: those from before there were others."""

FRAMEWORKS = {
    "ansor": "tlp_tvm.ansor.framework",
    "metaschedule": "tlp_tvm.metaschedule.framework",
}
"""Name -> the module with its `FRAMEWORK`; nothing of a framework is imported before it is asked for."""

OnErrors = Literal["raise", "skip"]
Tell = Callable[[str], None]
"""Receives a line before each long step."""


@dataclass(frozen=True)
class Contender:
    """A cost model and the rounds of its search.

    Attributes:
        model: one of `Framework.contenders`.
        per_round: programs measured per round.
        population: programs bred per round.
    """

    model: str
    per_round: int
    population: int

    @property
    def name(self) -> str:
        """As on the command line."""
        return f"{self.model}:{self.per_round}:{self.population}"


class Pool(Protocol):
    """Processes that compile and time programs; a context manager. See `measuring.pool.MeasuringPool`."""

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
        """Time the compiled programs, one after the other."""
        ...


class Framework(Protocol):
    """A search framework. A method for something that it lacks raises an error that says so."""

    name: str
    title: str
    """Name for messages."""
    population: int
    """Default number of programs bred per round of a tuning."""
    choice_population: int
    """The same of a generation, where the model chooses alone and nothing is measured."""
    default_model: str
    """The shipped model for its programs."""
    log: str
    """Name of the record file in the folder of a tuning."""
    layouts: tuple[str, ...]
    """Preset layouts of its programs; the last one has the framework's name."""
    caches: str
    """How it can time programs for a CPU at best, one of `measuring.child.CACHES`."""
    exported: str
    """Suffix of the files of networks that it takes, where there are others too."""

    # The environment.

    def is_here(self) -> bool:
        """Whether this environment has a TVM with this framework; nothing is loaded."""
        ...

    def checks(self) -> list[Check]:
        """Checks of everything it needs, for `tlp-tvm doctor`."""
        ...

    def code(self) -> str:
        """How it can compile programs here at best, as `measuring.pool.MeasureSettings.code` has it."""
        ...

    def tvm_version(self) -> str:
        """Version of the loaded TVM."""
        ...

    # Targets.

    def target(self, text: str, *, here: bool) -> Any:
        """A TVM target to measure on; this machine's CPU for an empty text.

        Raises:
            TuningError: there is no such target, or `here` is true and this machine cannot run it.
        """
        ...

    def cores(self, target: Any) -> int:
        """The number of cores that a target names, or else that this process has."""
        ...

    def flags_of(self, target: Any) -> str:
        """A target as models and datasets name it, e.g. "llvm -mcpu=znver2 -num-cores=4"."""
        ...

    def platform_name(self, target: Any) -> str:
        """A platform name for measurements of a target on this machine."""
        ...

    # Records.

    def wrote(self, begin: bytes) -> bool:
        """Whether a record file with these first bytes has its records."""
        ...

    def read(self, files: Sequence[str], errors: OnErrors, threads: int) -> RecordBatch:
        """All records of files; see `records.detect.read_records`."""
        ...

    def batches(
        self, files: Sequence[str], errors: OnErrors, threads: int, batch_size: int
    ) -> Iterator[RecordBatch]:
        """The records of files in batches of bounded memory; see `records.detect.iter_records`."""
        ...

    def programs(self, text: bytes, threads: int) -> RecordBatch:
        """Programs from their text in a dataset, one per line, without task and result.

        Raises:
            RecordError: a program is damaged.
        """
        ...

    def record(self, task: PlannedTask, program: Any, outcome: Outcome, compiled_s: float) -> str:
        """A measured program as a line that the framework reads."""
        ...

    def program_text(self, batch: RecordBatch, i: int) -> str:
        """What `store_rows` makes program i of a batch from."""
        ...

    def store_rows(
        self,
        tasks: Mapping[str, Mapping[str, int]],
        targets: Sequence[str],
        records: Mapping[str, Sequence[str]],
        tell: Tell,
    ) -> Iterator[tuple[str, NDArray[np.float32], NDArray[np.int32]]]:
        """TVM's per-store features of recorded programs; takes minutes per network.

        Args:
            tasks: workload key -> the networks that have it, built-in names or files.
            targets: for which the networks may have been split into tasks.
            records: workload key -> its programs' `program_text`s.
            tell: see `Tell`.

        Yields:
            A workload key, the (S, 164) rows of its programs, and the (n,) number of rows per program. Tasks
            of networks that are neither are left out.
        """
        ...

    # Tasks and programs.

    def plan(self, networks: Sequence[str], target: Any, tell: Tell, split_for: Any) -> Sequence[PlannedTask]:
        """The tasks of networks, each once.

        Args:
            networks: built-in names, or files.
            target: to measure on.
            tell: see `Tell`.
            split_for: the target to split the networks for, if it differs.

        Raises:
            NetworkError: no such network.
        """
        ...

    def split_for(self, noted: str | None, files: Sequence[Path]) -> Any:
        """The target that the networks of another platform's programs were split for.

        Args:
            noted: the target in their collection.json.
            files: their records, for collections without that entry.
        """
        ...

    def source(self, task: PlannedTask, seed: int, prior: Prior | None = None) -> ProgramSource:
        """A source of programs of a task.

        Args:
            task: of the programs.
            seed: of sampling and evolution.
            prior: a model that leads the evolution together with the measurements.
        """
        ...

    # Measuring, here and elsewhere.

    def pool(
        self, how: MeasureSettings, output: IO[Any], check: Callable[[], None], fleet: Fleet | None
    ) -> Pool:
        """A pool that measures programs.

        Raises:
            CollectionError: `fleet` is given, and it cannot measure on other machines.
        """
        ...

    def tracker(self, host: str, port: int) -> Any:
        """TVM's RPC tracker, running. Its `port` may differ; `proc` is its process.

        Raises:
            OSError: no port is free.
            RuntimeError: the same, from some versions of TVM.
        """
        ...

    def server(self, host: str, port: int, key: str, tracker: tuple[str, int]) -> Any:
        """TVM's RPC server, running, with `port` and `proc`."""
        ...

    # Searches side by side.

    @property
    def contenders(self) -> Mapping[str, tuple[int, int]]:
        """Cost models by name, each with its usual programs per round and population."""
        ...

    def measuring(
        self,
        how: MeasureSettings,
        output: IO[Any],
        note: Callable[[float, Any], None],
        check: Callable[[], None],
    ) -> AbstractContextManager[MeasuringPool]:
        """A pool that measures the programs of searches in turns.

        Args:
            how: to compile and time.
            output: a real file for the output of the processes.
            note: receives the latency of each program in seconds, infinity if it failed, and the program.
            check: called between programs; an exception from it ends the search.
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
        """A search of a task: a function that runs a round of a given number of measured programs.

        Args:
            contender: the cost model and its rounds.
            task: a `PlannedTask` of this framework.
            seed: of the search, any non-negative integer.
            trials: most programs that it will measure in total.
            scorer: the loaded model of "tlp" contenders; None if there are none.
            pool: from `measuring`.
            spent: seconds by part; scoring and learning are added.
        """
        ...

    # Tuning a whole network.

    def tuner(self, settings: Any, model: Any, observer: Any) -> Any:
        """One network, ready to be tuned (`tuning.tuner_protocol.Tuner`); nothing is written yet.

        Args:
            settings: `tuning.tune_settings.TuneSettings`.
            model: the model that scores: what `tlp_tvm.load_model` takes, a model, or one of its own by name.
            observer: `tuning.tune_observer.TuneObserver`.

        Raises:
            TuningError: there is no such target, or it lacks a setting.
            NetworkError: there is no such network.
            ModelFileError: the model cannot be read, or is of another framework.
        """
        ...

    def load_tuned(self, folder: Path) -> Any:
        """The tuned network of a run, a `tuning.tuned_library.TunedNetwork`.

        Raises:
            TuningError: there is none in the folder, or none that runs here.
        """
        ...

    def parse_shapes(self, texts: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
        """Shapes of inputs that a network's file leaves open, from "NAME=1,3,224,224".

        Raises:
            NetworkError: a text names no shape.
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
            counts: programs for a CPU and for a GPU; 0 for none.
            how: `model`, `threads` and `rounds`.
            tell: see `Tell`.

        Raises:
            NetworkError: there is no such task.
        """
        ...

    def bench_breed(
        self, task: str, count: int, gpu: bool, how: Mapping[str, Any], tell: Tell
    ) -> Sequence[Any]:
        """Rates of breeding beside TVM's own evolution; see `bench.breed_result`.

        Args:
            task: an operator.
            count: programs of a generation.
            gpu: whether for a GPU too.
            how: `model`, `threads` and `rounds`.
            tell: see `Tell`.

        Raises:
            NetworkError: there is no such task.
        """
        ...


def framework_here() -> Framework:
    """The framework of this environment's TVM; the default one if there is none."""
    found = [framework_named(name) for name in FRAMEWORKS if framework_named(name).is_here()]
    return next(iter(found), framework_named(DEFAULT))


def framework_named(name: str) -> Framework:
    """The framework of that name, one of `FRAMEWORKS`."""
    found: Framework = importlib.import_module(FRAMEWORKS[name]).FRAMEWORK
    return found
