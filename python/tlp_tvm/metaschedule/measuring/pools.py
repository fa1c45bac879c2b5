"""Compiles and times MetaSchedule's programs in persistent processes (`measuring.pool.MeasuringPool`).

TVM's own builder starts new children for every batch, and each imports TVM for seconds first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from tlp_tvm.measuring.pool import MeasureSettings, MeasuringPool, start_child
from tlp_tvm.metaschedule.graph.fusing import weights_of
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.measuring import work
from tlp_tvm.metaschedule.measuring.work import Serialized


@dataclass(frozen=True)
class Measurable:
    """A program to measure.

    Attributes:
        key: of its task, whatever identifies it.
        module: the scheduled IRModule.
        target: TVM's target.
    """

    key: str
    module: Any
    target: Any

    def serialized(self) -> Serialized:
        """For a child."""
        arguments = [(tuple(shape), dtype) for _, dtype, shape in arguments_of(self.module)]
        text = load_tvm().ir.save_json(self.module)
        return Serialized(text, str(self.target), tuple(arguments), weights_of(self.module))


class TracePool(MeasuringPool):
    """The children; what is built and run are `Measurable`s, or have the same members."""

    _worker = work

    def __init__(
        self,
        settings: MeasureSettings,
        log: IO[Any] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Start nothing yet.

        Args:
            settings: how to measure.
            log: a real file for what the children print; nowhere if None.
            check: called between programs; what it raises ends the measuring.
        """
        super().__init__(settings, log, check)

    def _start_child(self) -> Any:
        load_tvm()
        from tvm.support.popen_pool import PopenWorker

        return start_child(PopenWorker, self.settings, self._log)

    def _serialized(self, measure_input: Any) -> Serialized:
        serialized: Serialized = measure_input.serialized()
        return dataclasses.replace(serialized, code=self.settings.code)

    def _key(self, measure_input: Any) -> str:
        return str(measure_input.key)

    def _inputs(self, measure_input: Any) -> tuple[Any, ...]:
        return ()


def arguments_of(module: Any) -> list[list[Any]]:
    """The arguments of a scheduled module as records have them: ["TENSOR", type, shape] each."""
    load_tvm()
    from tvm.s_tir.meta_schedule.arg_info import ArgInfo

    return [
        [str(kind), str(dtype), [int(extent) for extent in shape]]
        for kind, dtype, shape in (
            info.as_json() for info in ArgInfo.from_entry_func(module, remove_preproc=True)
        )
    ]
