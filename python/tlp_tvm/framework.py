"""What a framework gives a collection: targets, tasks, programs to measure, the measuring, and records."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Protocol

from tlp_tvm.measuring.child import Outcome
from tlp_tvm.measuring.pool import MeasureSettings

if TYPE_CHECKING:
    from tlp_tvm.collection.planning import PlannedTask
    from tlp_tvm.collection.program_source import Prior, ProgramSource
    from tlp_tvm.measuring.remote_worker import Fleet

FRAMEWORKS = {
    "ansor": "tlp_tvm.ansor.framework",
    "metaschedule": "tlp_tvm.metaschedule.framework",
}
"""Name -> the module with its `FRAMEWORK`; nothing of a framework is imported before it is asked for."""


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
    """A search framework, as a collection sees it."""

    name: str

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

    def plan(
        self, networks: Sequence[str], target: Any, tell: Callable[[str], None], split_for: Any
    ) -> list[PlannedTask]:
        """The tasks of networks, each once; `split_for` as for `collection.planning.plan_tasks`.

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

    def pool(
        self, how: MeasureSettings, output: IO[Any], check: Callable[[], None], fleet: Fleet | None
    ) -> Pool:
        """What measures them.

        Raises:
            CollectionError: it cannot measure on other machines, and is asked to.
        """
        ...

    def record(self, task: PlannedTask, program: Any, outcome: Outcome, compiled_s: float) -> str:
        """A measured program as a line that the framework reads."""
        ...

    def tvm_version(self) -> str:
        """Of the loaded TVM."""
        ...


def framework_named(name: str) -> Framework:
    """The framework of that name, one of `FRAMEWORKS`."""
    found: Framework = importlib.import_module(FRAMEWORKS[name]).FRAMEWORK
    return found
