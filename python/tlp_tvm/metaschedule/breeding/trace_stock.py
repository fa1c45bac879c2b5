"""What breeds of one of MetaSchedule's tasks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tlp_tvm import _core
from tlp_tvm.breeding.breeder import Breeder
from tlp_tvm.metaschedule.breeding.trace_replay import TraceReplayer
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.reading.traces import texts_of
from tlp_tvm.metaschedule.search.tvms_sample import drawn, ready_search

SAMPLED = 64
"""Random programs that TVM draws of a task, 5 to 50 ms each: they show its designs, and the places where
blocks may be computed."""

PARTS = 4
"""In which they are drawn, each on one thread; what TVM draws on several differs from time to time."""

CHANGES = (0.70, 0.15, 0.05, 0.10, 0.0)
"""How often a child gets: a factor moved between two tile sizes, a tile drawn anew, another unrolling,
another place of those shown. TVM: 0.90, 0, 0.03, 0.05, and 0.02 for how many loops are parallel."""

INNERMOST = 64
"""Longest innermost loop, where a trace does not say."""

_SEEDS = 2**31 - 2
"""TVM's are less than this, and not 0."""

ANOTHER, FRESH, CROSS, ALTER = 0.3, 0.1, 0.3, 0.7
"""As with Ansor's programs."""


class TraceStock(Breeder):
    """The programs of one of MetaSchedule's tasks that breed."""

    def __init__(self, task: TraceTask, seed: int, *, sampled: int = SAMPLED, threads: int = 1) -> None:
        """Prepare; nothing is drawn yet.

        Args:
            task: whose programs.
            seed: of the sample.
            sampled: random programs that TVM draws.
            threads: that draw and replay; the programs are the same on any number.
        """
        self.stock = _core.Stock("metaschedule")
        self.plan = _core.BreedingPlan(
            changes=list(CHANGES),
            unrolls=[],
            most_innermost=INNERMOST,
            another=ANOTHER,
            fresh=FRESH,
            cross=CROSS,
            alter=ALTER,
        )
        self._task, self._seed, self._sampled, self._threads = task, seed, sampled, threads

    @functools.cached_property
    def context(self) -> Any:
        """`ms.TuneContext` whose postprocessors a program goes through."""
        return ready_search(self._task, 1, 1)

    @functools.cached_property
    def sample(self) -> _core.Herd:
        """What TVM draws, each program once."""
        count = -(-self._sampled // PARTS)

        def part(i: int) -> list[Any]:
            seed = (self._seed * PARTS + i) % _SEEDS + 1
            return drawn(ready_search(self._task, seed, count), count)

        with ThreadPoolExecutor(self._threads) as pool:
            return self.distinct([self.add(schedules) for schedules in pool.map(part, range(PARTS))])

    @functools.cached_property
    def replayer(self) -> TraceReplayer:
        """Gives TVM's schedules of what was bred."""
        return TraceReplayer(self._task.module, self.context, self._threads)

    def as_replayed(self, bred: _core.Herd, program: Any) -> _core.Herd:
        """A program as TVM has it now: places of blocks may be others.

        Args:
            bred: the program as it was bred.
            program: TVM's replay of it.
        """
        return self.add([program])

    def add(self, schedules: Sequence[Any]) -> _core.Herd:
        """Take in more programs.

        Args:
            schedules: of the task, or traces.

        Raises:
            RecordError: one is no program that breeding understands.
        """
        if not len(schedules):
            return self.stock.joined([])
        return self.add_texts(texts_of(schedules))

    def add_texts(self, traces: Sequence[str]) -> _core.Herd:
        """Take in more programs.

        Args:
            traces: as the JSON of records.

        Raises:
            RecordError: one is no program that breeding understands.
        """
        text = "".join(f"{trace}\n" for trace in traces)
        return self.stock.add_traces(_core.read_traces(text.encode(), "<programs>", 1, "trace", False))
