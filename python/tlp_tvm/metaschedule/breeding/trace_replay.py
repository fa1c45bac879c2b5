"""Bred traces -> TVM's schedules, postprocessed as TVM's own search does it."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tlp_tvm import _core
from tlp_tvm.breeding.breeder import Replayer
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.reading.traces import steps


class TraceReplayer(Replayer):
    """Replays programs of one task."""

    def __init__(self, module: Any, context: Any, threads: int = 1) -> None:
        """Prepare.

        Args:
            module: what the task computes.
            context: `ms.TuneContext` of the task, initialised.
            threads: that replay where several programs are wanted.
        """
        super().__init__()
        self._threads = threads
        self._module = module
        self._postprocessors = list(context.space_generator.postprocs)

    def program(self, herd: _core.Herd, i: int) -> Any | None:
        """TVM's schedule of a program.

        Args:
            herd: bred programs of the task.
            i: which.

        Returns:
            `tvm.s_tir.Schedule`, whose trace begins as it was bred, but for places of blocks: of loops of one
            turn, TVM takes the one outside. None, counted, where TVM, or one of its postprocessors, refuses
            it.
        """
        return self._counted(self._made(herd, i))

    def programs(self, herd: _core.Herd, places: Iterable[int], count: int) -> list[tuple[int, Any]]:
        """The first programs that TVM replays, on several threads; the same on any number of them.

        Args:
            herd: bred programs of the task.
            places: which, the most wanted first.
            count: how many are wanted.
        """
        found: list[tuple[int, Any]] = []
        waiting = iter(places)
        with ThreadPoolExecutor(self._threads) as pool:
            while asked := list(itertools.islice(waiting, count - len(found))):
                made = map(self._counted, pool.map(functools.partial(self._made, herd), asked))
                found += [pair for pair in zip(asked, made, strict=True) if pair[1] is not None]
        return found

    def _counted(self, made: Any) -> Any | None:
        """A program, counted; None for why there is none."""
        if isinstance(made, str):
            self.counts.refuse(made)
            return None
        self.counts.replayed += 1
        return made

    def _made(self, herd: _core.Herd, i: int) -> Any:
        """A program, or in words why there is none."""
        load_tvm()
        from tvm.s_tir import Schedule, Trace

        schedule = Schedule(self._module, error_render_level="none")
        try:
            Trace.apply_json_to_schedule(json.loads(herd.text(i)), schedule)
            schedule.enter_postproc()
            for postprocessor in self._postprocessors:
                if not postprocessor.apply(schedule):
                    return f"{type(postprocessor).__name__} refused it"
        except Exception as error:  # noqa: BLE001 - whatever TVM raises, the program is none of its
            return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        bred = herd.steps(i)
        if _without_places(steps([schedule])[0][: len(bred)]) != _without_places(bred):
            return "the steps after the replay are not those bred"
        return schedule


def _without_places(steps: list[list[Any]]) -> list[list[Any]]:
    return [step[:-1] if step[0] == "SampleComputeLocation" else step for step in steps]
