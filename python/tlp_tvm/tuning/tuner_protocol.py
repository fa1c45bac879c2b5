"""What a framework gives to a tuning (`Framework.tuner`): one network, from its file to its library."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, Protocol

from tlp_tvm.measuring.pool import MeasuringPool
from tlp_tvm.measuring.stopping import StopOnInterrupt
from tlp_tvm.tuning.history import History
from tlp_tvm.tuning.network.operator_times import OperatorTime
from tlp_tvm.tuning.network.turns import EndToEnd
from tlp_tvm.tuning.run_folder import RunFolder
from tlp_tvm.tuning.tune_progress import Progress


class Tuner(Protocol):
    """One network under one framework, from its file to its library; made before anything is written."""

    network: str
    target: str
    model: str
    """Its name."""
    model_source: str
    """By what it can be loaded again."""
    platform: str
    """The head that scores."""
    graph: dict[str, Any] | None
    """What was done to the network before it was split into tasks, for run.json; None where nothing is."""
    runs_here: bool
    """Whether this machine runs programs for the target."""
    error: BaseException | None
    """The first error inside a call from TVM, whose frames may lose it."""
    builds_after: int
    """How often it builds the network after a search, at most."""
    relinks: bool
    """Whether most of these builds only link the network anew."""
    choice_s: float
    """Seconds that it takes to choose a task's program without measuring; 0 where `take` does not."""
    tables: tuple[str, ...]
    """Names of the files that the record log needs beside it."""

    def split(self) -> list[dict[str, Any]]:
        """The tasks of the network: name, workload_key, weight and flops of each.

        Raises:
            TuningError: there are more tasks than programs to measure.
        """
        ...

    def build_untuned(self) -> None:
        """Compile the network without records, to be held against."""
        ...

    def known(self, folder: RunFolder, history: History) -> list[float]:
        """Latency of each task's fastest known program, seconds; infinity for a task without one."""
        ...

    def prepare(self, folder: RunFolder, history: History) -> None:
        """Take in what earlier calls and logs teach, before the search begins."""
        ...

    def pool(self, output: IO[Any], progress: Progress, check: Callable[[], None]) -> MeasuringPool:
        """What measures; a context manager that tells `progress` of each program."""
        ...

    def search(
        self, folder: RunFolder, history: History, pool: Any, stop: StopOnInterrupt, progress: Progress
    ) -> None:
        """Measure programs until there are as many as were asked for."""
        ...

    def choose(self, folder: RunFolder, chosen_before: bool, stop: StopOnInterrupt) -> None:
        """Have the model choose a program of each task, without measuring.

        Args:
            folder: of the run.
            chosen_before: whether what the folder holds was chosen in the same way.
            stop: asked between tasks.

        Raises:
            TuningError: the framework cannot.
        """
        ...

    def compiled_again(self, best: Iterable[float]) -> int | None:
        """How many tasks' programs are compiled again when the network is built of the fastest.

        Args:
            best: latency of each task's fastest program, seconds; infinity for a task without one.

        Returns:
            None where all are.
        """
        ...

    def take(self, folder: RunFolder, history: History) -> set[str]:
        """Workload keys of the tasks that have a program for the network, which is noted in the folder.

        Where some were measured, the model chooses for a whole network's others.
        """
        ...

    def build_tuned(self, folder: RunFolder) -> tuple[Path | None, str]:
        """Compile the network with the programs taken.

        Returns:
            The library; or None, and why it did not compile.
        """
        ...

    def choose_inside(self, folder: RunFolder, turns: int, tries: int) -> tuple[int, set[str]]:
        """Take other programs where they are faster inside the network, and build it of these.

        Args:
            folder: of the run.
            turns: timings of the network with other programs, and of the one before.
            tries: networks of other programs to build, at most.

        Returns:
            How many tasks have another program now, and workload keys of those that keep TVM's own schedule,
            which is faster inside.
        """
        ...

    def best_file(self, folder: RunFolder) -> Path:
        """Where the programs taken are."""
        ...

    def operators(self, folder: RunFolder) -> list[OperatorTime]:
        """The tuned network by operator, heaviest first; empty where that cannot be told."""
        ...

    def keep_untuned(self, folder: RunFolder) -> Path:
        """Put the untuned network in the place of the library."""
        ...

    def compare(self, turns: int) -> EndToEnd | None:
        """Time the network untuned and tuned; None where it did not compile."""
        ...
