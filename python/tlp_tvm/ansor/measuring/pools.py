"""Processes that compile and time Ansor's programs; TVM's own searches can use them.

While a `StatePool` that stands in for TVM's `LocalBuilder` and `LocalRunner` is open, what these would do is
done by the pool's children.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from tlp_tvm.ansor.compiling.kept_code import KeptCode, name_of
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring import work
from tlp_tvm.latency import latency_of_costs
from tlp_tvm.measuring.child import Outcome
from tlp_tvm.measuring.pool import FAILED_COST, MeasureSettings, MeasuringPool, reason_of, start_child

if TYPE_CHECKING:
    from typing_extensions import Self

_BUILD, _RUN = "auto_scheduler.local_builder.build", "auto_scheduler.local_runner.run"


class StatePool(MeasuringPool):
    """The children; what is built and run are `auto_scheduler.MeasureInput`s."""

    _worker = work

    def __init__(
        self,
        settings: MeasureSettings,
        log: IO[Any] | None = None,
        on_result: Callable[[Any, Any, str], None] = lambda _input, _result, _reason: None,
        check: Callable[[], None] = lambda: None,
        for_tvm: bool = True,
        kept: KeptCode | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            settings: how to measure.
            log: a real file for what the children print; nowhere if None.
            on_result: called after each program of TVM's searches with its `MeasureInput`, its
                `MeasureResult`, and why it failed (empty if it did not).
            check: called between programs; what it raises ends the tuning.
            for_tvm: whether it stands in for TVM's builder and runner, or is only asked directly.
            kept: takes the code of the fastest programs of TVM's searches; None where nobody wants it.
        """
        super().__init__(settings, log, check)
        self._on_result = on_result
        self._for_tvm = for_tvm
        self._kept = kept
        self._names: dict[int, str] = {}
        self._replaced: dict[str, Any] = {}

    def __enter__(self) -> Self:
        super().__enter__()
        stand_ins = ((_BUILD, self._build_for_tvm), (_RUN, self._run_for_tvm))
        for name, function in stand_ins if self._for_tvm else ():
            tvm = load_tvm()
            self._replaced[name] = tvm.get_global_func(name)
            tvm.register_func(name, function, override=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, function in self._replaced.items():
            load_tvm().register_func(name, function, override=True)
        self._replaced.clear()
        super().__exit__(kind, error, trace)

    def _start_child(self) -> Any:
        return start_child(load_tvm().contrib.popen_pool.PopenWorker, self.settings, self._log)

    def _serialized(self, program: Any) -> work.Serialized:
        serialized = program.serialize()
        if self._kept is None:
            return work.Serialized(serialized, self.settings.code)
        return work.Serialized(serialized, self.settings.code, name_of(serialized[0]))

    def _compile(self, child: Any, number: int, serialized: Any) -> Outcome:
        outcome = super()._compile(child, number, serialized)
        if self._kept is not None and outcome.code is not None:
            self._kept.add(outcome.code)
            self._names[number] = outcome.code.name
        return dataclasses.replace(outcome, code=None)

    def _key(self, program: Any) -> str:
        return str(program.task.workload_key)

    def _inputs(self, program: Any) -> tuple[Any, ...]:
        return (inputs_that_matter(program.task),)

    def _build_for_tvm(self, inputs: Any, *_settings: Any) -> list[Any]:
        results = load_tvm().auto_scheduler.measure.BuildResult
        outcomes = self.build(list(inputs))
        return [
            results(str(number), [], outcome.error, outcome.message, outcome.seconds)
            for number, outcome in outcomes
        ]

    def _run_for_tvm(self, inputs: Any, builds: Any, *_settings: Any) -> list[Any]:
        results = load_tvm().auto_scheduler.MeasureResult
        outcomes = [Outcome((), int(each.error_no), str(each.error_msg), 0.0) for each in builds]
        numbers = [0 if each.error_no else int(each.filename) for each in builds]
        built = list(zip(numbers, outcomes, strict=True))
        measured: dict[int, Any] = {}
        for i, outcome in self.run_all(built, inputs):
            costs = [FAILED_COST] if outcome.error else list(outcome.costs)
            seconds = float(builds[i].time_cost) + outcome.seconds
            measured[i] = results(costs, outcome.error, outcome.message, seconds, time.time())
            if self._kept is not None and not builds[i].error_no:
                name = self._names.pop(numbers[i], "")
                self._kept.timed(self._key(inputs[i]), name, latency_of_costs(costs))
            self._on_result(inputs[i], measured[i], reason_of(outcome))
        return [measured[i] for i in range(len(built))]


def inputs_that_matter(task: Any) -> dict[str, Any]:
    """Inputs that a task was registered with, as they may not be random (sparse indices, say)."""
    buffer = load_tvm().auto_scheduler.search_task.get_task_input_buffer
    return {str(name): buffer(task.workload_key, name).numpy() for name in task.task_input_names}
