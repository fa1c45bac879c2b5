"""Bred traces -> TVM's schedules, postprocessed as TVM's own search does it."""

from __future__ import annotations

import json
from typing import Any

from tlp_tvm import _core
from tlp_tvm.breeding.breeder import Replayer
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.reading.traces import steps


class TraceReplayer(Replayer):
    """Replays programs of one task."""

    def __init__(self, module: Any, context: Any) -> None:
        """Prepare.

        Args:
            module: what the task computes.
            context: `ms.TuneContext` of the task, initialised.
        """
        super().__init__()
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
        load_tvm()
        from tvm.s_tir import Schedule, Trace

        schedule = Schedule(self._module, error_render_level="none")
        try:
            Trace.apply_json_to_schedule(json.loads(herd.text(i)), schedule)
            schedule.enter_postproc()
            for postprocessor in self._postprocessors:
                if not postprocessor.apply(schedule):
                    self.counts.refuse(f"{type(postprocessor).__name__} refused it")
                    return None
        except Exception as error:  # noqa: BLE001 - whatever TVM raises, the program is none of its
            self.counts.refuse((str(error).strip().splitlines() or [type(error).__name__])[0][:200])
            return None
        bred = herd.steps(i)
        if _without_places(steps([schedule])[0][: len(bred)]) != _without_places(bred):
            self.counts.refuse("the steps after the replay are not those bred")
            return None
        self.counts.replayed += 1
        return schedule


def _without_places(steps: list[list[Any]]) -> list[list[Any]]:
    return [step[:-1] if step[0] == "SampleComputeLocation" else step for step in steps]
