"""What a framework gives a comparison, beside what it gives a collection: searches, round by round."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, Any, Protocol

from tlp_tvm.comparison.compare_settings import Contender
from tlp_tvm.measuring.pool import MeasureSettings, MeasuringPool

CONTENDERS = {
    "ansor": "tlp_tvm.ansor.search.contenders",
    "metaschedule": "tlp_tvm.metaschedule.search.contenders",
}
"""Name -> the module with its `CONTENDERS`; nothing of a framework is imported before it is asked for."""


class Contenders(Protocol):
    """The searches of a framework."""

    def measuring(
        self,
        how: MeasureSettings,
        output: IO[Any],
        note: Callable[[float, Any], None],
        check: Callable[[], None],
    ) -> AbstractContextManager[MeasuringPool]:
        """What measures their programs, one search at a time.

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
            task: `collection.planning.PlannedTask` of this framework.
            seed: of the search, any non-negative integer.
            trials: programs that it will measure in all, at most.
            scorer: the loaded model of those of "tlp"; None if there are none.
            pool: what `measuring` gave.
            spent: seconds by `stopwatch.PARTS`; scoring and learning are added.
        """
        ...


def contenders_of(framework: str) -> Contenders:
    """The searches of the framework of that name."""
    found: Contenders = importlib.import_module(CONTENDERS[framework]).CONTENDERS
    return found
