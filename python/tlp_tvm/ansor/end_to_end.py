"""The whole network, built as it comes and built from a tuning's records, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.ansor.layout_rewrite import best_records
from tlp_tvm.ansor.locate import load_tvm
from tlp_tvm.errors import TuningError

_SMALL = 1e-3
"""Outputs are compared as if their largest value were at least this: below, the rounding of a tanh shows."""

ROUNDING = 1e-4
"""Relative difference of outputs that another order of additions explains."""

_RUNS_MS = 100
"""A timing repeats the network until this much time has passed."""


@dataclass(frozen=True)
class EndToEnd:
    """Latency of a network in seconds, untuned and tuned, timed in turns so that noise hits both alike.

    Attributes:
        untuned: seconds of each timing of the network as TVM builds it without records.
        tuned: seconds of each timing of the network built from the records.
        difference: largest difference of an output value, relative to the largest value of that output, or
            to 0.001 where that is larger.
    """

    untuned: tuple[float, ...]
    tuned: tuple[float, ...]
    difference: float

    @property
    def untuned_latency(self) -> float:
        """Median, seconds."""
        return float(np.median(self.untuned))

    @property
    def tuned_latency(self) -> float:
        """Median, seconds."""
        return float(np.median(self.tuned))

    @property
    def speedup(self) -> float:
        """How many times faster the tuned network is."""
        return self.untuned_latency / self.tuned_latency


def build_untuned(module: Any, parameters: dict[str, Any], target: Any) -> Any:
    """Compile a network with TVM's own schedules.

    Args:
        module: Relay module.
        parameters: by name.
        target: TVM target.

    Raises:
        TuningError: TVM cannot compile it.
    """
    tvm = load_tvm()
    try:
        with tvm.transform.PassContext(opt_level=3):
            return tvm.relay.build(module, target=target, params=parameters)
    except (tvm.TVMError, RuntimeError) as failure:
        raise TuningError(
            f"expected a network that TVM can compile for {target.kind.name}, found: {_reason(failure)}; "
            "choose another network or target"
        ) from failure


def build_tuned(
    module: Any, parameters: dict[str, Any], target: Any, log: Path, kept: set[str], keys: set[str]
) -> Any:
    """Compile a network with the best record of each task; a task without one gets TVM's own schedule.

    What can fail for a program that was measured is the rewriting of its weights: then it is left out.

    Args:
        module: Relay module.
        parameters: by name.
        target: TVM target.
        log: TVM's record file.
        kept: workload keys of tasks whose weights stay as they are.
        keys: workload keys of all tasks.

    Raises:
        TuningError: TVM cannot compile it, as for a GPU without its compiler.
    """
    error = load_tvm().TVMError
    try:
        return _build_tuned(module, parameters, target, log, kept)
    except error:
        pass
    except RuntimeError as failure:
        raise _not_built(log, failure) from failure
    try:
        return _build_tuned(module, parameters, target, log, keys)
    except (error, RuntimeError) as failure:
        raise _not_built(log, failure) from failure


def _not_built(log: Path, failure: BaseException) -> TuningError:
    return TuningError(
        f"{log}: expected records that the network can be built from, found: {_reason(failure)}"
    )


def _reason(failure: BaseException) -> str:
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[-1] if lines else type(failure).__name__


def _build_tuned(module: Any, parameters: dict[str, Any], target: Any, log: Path, kept: set[str]) -> Any:
    tvm = load_tvm()
    context = best_records(log, kept)
    fallback = tvm.auto_scheduler.dispatcher.DispatchContext.current
    verbose, fallback.verbose = fallback.verbose, 0  # what lacks a record is reported by the caller
    try:
        with (
            context,
            tvm.transform.PassContext(opt_level=3, config={"relay.backend.use_auto_scheduler": True}),
        ):
            return tvm.relay.build(module, target=target, params=parameters)
    finally:
        fallback.verbose = verbose


def compare(
    untuned: Any, tuned: Any, inputs: dict[str, NDArray[Any]], target: Any, turns: int, threads: int
) -> EndToEnd:
    """Run both in turns on the same input.

    Args:
        untuned: that `build_untuned` gave.
        tuned: that `build_tuned` gave.
        inputs: by name.
        target: TVM target.
        turns: timings of each.
        threads: to run with.
    """
    # TVM makes a thread pool for each thread that runs a parallel loop, and asks then for the number.
    with _environment("TVM_NUM_THREADS", str(threads)), ThreadPoolExecutor(1) as fresh_thread:
        return fresh_thread.submit(_compare, untuned, tuned, inputs, target, turns).result()


def _compare(untuned: Any, tuned: Any, inputs: dict[str, NDArray[Any]], target: Any, turns: int) -> EndToEnd:
    times: tuple[list[float], list[float]] = ([], [])
    runs = [_runner(library, inputs, target) for library in (untuned, tuned)]
    outputs = [outputs_of() for _, outputs_of in runs]  # also warms both up
    for _ in range(turns):
        for (time_it, _), seconds in zip(runs, times, strict=True):
            seconds.append(time_it())
    return EndToEnd(tuple(times[0]), tuple(times[1]), _difference(*outputs))


@contextmanager
def _environment(variable: str, value: str) -> Iterator[None]:
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        del os.environ[variable]
        if before is not None:
            os.environ[variable] = before


def random_inputs(module: Any, parameters: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Standard normal inputs, zeros where they are integers; the same at every call.

    Args:
        module: Relay module.
        parameters: by name; the other variables of "main" are the inputs.
    """
    generator = np.random.default_rng(0)
    inputs = {}
    for variable in module["main"].params:
        if variable.name_hint in parameters:
            continue
        shape = [int(extent) for extent in variable.type_annotation.shape]
        kind = np.dtype(variable.type_annotation.dtype)
        values = generator.standard_normal(shape) if kind.kind == "f" else np.zeros(shape)
        inputs[variable.name_hint] = values.astype(kind)
    return inputs


def _runner(
    library: Any, inputs: dict[str, NDArray[Any]], target: Any
) -> tuple[Callable[[], float], Callable[[], list[NDArray[Any]]]]:
    """Functions that time a network once, and that run it and give its outputs."""
    tvm = load_tvm()
    from tvm.contrib import graph_executor

    device = tvm.device(str(target.kind.name), 0)
    executor = graph_executor.GraphModule(library["default"](device))
    executor.set_input(**inputs)
    timer = executor.module.time_evaluator("run", device, number=1, repeat=1, min_repeat_ms=_RUNS_MS)

    def outputs_of() -> list[NDArray[Any]]:
        executor.run()
        return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]

    return lambda: float(timer().mean), outputs_of


def _difference(expected: list[NDArray[Any]], found: list[NDArray[Any]]) -> float:
    return max(
        float(np.abs(a.astype(np.float64) - b).max() / max(float(np.abs(a).max()), _SMALL))
        for a, b in zip(expected, found, strict=True)
    )
