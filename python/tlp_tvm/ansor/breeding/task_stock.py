"""What breeds of one of Ansor's tasks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tlp_tvm import _core
from tlp_tvm.ansor.breeding.replay import StateReplayer
from tlp_tvm.ansor.breeding.rules import plan_for
from tlp_tvm.ansor.reading.gpu_check import GpuCheck
from tlp_tvm.ansor.reading.states import as_array, reader
from tlp_tvm.ansor.search.sampling import drawn_states
from tlp_tvm.breeding.breeder import Breeder

SAMPLED = 64
"""Random programs that TVM draws of a task: they show its sketches, and where stages may be computed."""

GROWTHS = 3
"""Times that as many more are drawn, where a search gains no more."""

_APART = 1_000_003
"""Between the seeds of a task's draws."""


class TaskStock(Breeder):
    """The programs of one of Ansor's tasks that breed."""

    def __init__(self, task: Any, seed: int, sampled: int = SAMPLED) -> None:
        """Prepare; nothing is drawn yet.

        Args:
            task: `auto_scheduler.SearchTask`.
            seed: of the sample.
            sampled: random programs that TVM draws, about.
        """
        self.stock = _core.Stock("ansor")
        self.plan = plan_for(task)
        self.gpu = GpuCheck(task).rules
        self._task, self._seed, self._sampled = task, seed, sampled
        self._herds: list[_core.Herd] = []

    @property
    def sample(self) -> _core.Herd:
        """What TVM has drawn, each program once."""
        if not self._herds:
            self._draw()
        return self._herds[-1]

    def grow(self) -> None:
        """Have TVM draw more programs, up to `GROWTHS` times."""
        if len(self._herds) <= GROWTHS:
            self._draw()

    @functools.cached_property
    def replayer(self) -> StateReplayer:
        """Gives TVM's states of what was bred."""
        return StateReplayer(self._task)

    def _draw(self) -> None:
        drawn = drawn_states(self._task, self._sampled, self._seed + _APART * len(self._herds))
        self._herds.append(self.distinct([*self._herds[-1:], self.add(drawn)]))

    def add(self, states: Sequence[Any]) -> _core.Herd:
        """Take in more programs.

        Args:
            states: of the task.

        Raises:
            RecordError: one is no program that breeding understands.
        """
        array = as_array(states)
        return self.stock.add_states(reader(), array.handle.value)
