"""The whole network, built as it comes and built from a tuning's records, side by side."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.ansor.compiling.kept_code import CodeOf
from tlp_tvm.ansor.compiling.newer_llvm import is_newer, unoptimised
from tlp_tvm.ansor.compiling.newer_network import NewerNetwork, wait_for
from tlp_tvm.ansor.compiling.pass_settings import of_a_network
from tlp_tvm.ansor.graph.constants import folding_before
from tlp_tvm.ansor.graph.pipeline import ALL, Prepared, prepare
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.integer_inputs import integer_bounds
from tlp_tvm.ansor.networks.layout_rewrite import best_records
from tlp_tvm.errors import TuningError, last_line_of
from tlp_tvm.tuning.network.turns import RUNS_MS, EndToEnd, Runner, random_values, seconds_of, time_in_turns


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
        if len(module.functions) == 1:  # what the build does first itself, but constants take longer there
            prepared = prepare(module, parameters, target, [name for name in ALL if name != "inference"])
            module, parameters = prepared.module, prepared.parameters
        with tvm.transform.PassContext(opt_level=3, instruments=[folding_before()]):
            return tvm.relay.build(module, target=target, params=parameters)
    except (tvm.TVMError, RuntimeError, AssertionError, NotImplementedError, ValueError) as failure:
        raise TuningError(
            f"expected a network that TVM can compile for {target.kind.name}, "
            f"found: {last_line_of(failure)}; choose another network or target"
        ) from failure


def build_tuned(
    prepared: Prepared, target: Any, log: Path, kept: set[str], keys: set[str], code: CodeOf
) -> tuple[Any, dict[str, str]]:
    """Compile a network with the best record of each task; a task without one gets TVM's own schedule.

    What can fail for a program that was measured is the rewriting of its weights: then it is left out.

    Args:
        prepared: the network.
        target: TVM target.
        log: TVM's record file.
        kept: workload keys of tasks whose weights stay as they are.
        keys: workload keys of all tasks.
        code: of its programs.

    Returns:
        What TVM built; and name of each of its functions to the workload key of its task.

    Raises:
        TuningError: TVM cannot compile it, as for a GPU without its compiler.
    """
    error = load_tvm().TVMError
    try:
        return _whole(_build_tuned(prepared, target, log, kept, code))
    except error:
        pass
    except RuntimeError as failure:
        raise _not_built(log, failure) from failure
    try:
        return _whole(_build_tuned(prepared, target, log, keys, CodeOf(code.kind)))
    except (error, RuntimeError) as failure:
        raise _not_built(log, failure) from failure


def _whole(found: tuple[Any, dict[str, str]]) -> tuple[Any, dict[str, str]]:
    """The same, once it is compiled.

    Raises:
        RuntimeError: it cannot be.
    """
    wait_for(found[0])
    return found


def build_variant(
    prepared: Prepared, target: Any, log: Path, kept: set[str], code: CodeOf
) -> tuple[Any, dict[str, str]] | None:
    """The same, for a comparison: None where TVM cannot compile exactly that. LLVM may be at it still."""
    try:
        return _build_tuned(prepared, target, log, kept, code)
    except (load_tvm().TVMError, RuntimeError):
        return None


def _not_built(log: Path, failure: BaseException) -> TuningError:
    return TuningError(
        f"{log}: expected records that the network can be built from, found: {last_line_of(failure)}"
    )


def _build_tuned(
    prepared: Prepared, target: Any, log: Path, kept: set[str], code: CodeOf
) -> tuple[Any, dict[str, str]]:
    tvm = load_tvm()
    fallback = tvm.auto_scheduler.dispatcher.DispatchContext.current
    verbose, fallback.verbose = fallback.verbose, 0  # what lacks a record is reported by the caller
    kind = str(target.kind.name)
    newly = kind == "llvm" and is_newer(code.kind)
    context = best_records(log, kept, code.of_records(log) if newly else None)
    settings = of_a_network(tvm, target, prepared.needless, code.kind)
    built_for = unoptimised(tvm, target) if newly else target
    try:
        with context, tvm.transform.PassContext(**settings, instruments=[folding_before()]):
            built = tvm.relay.build(prepared.module, target=built_for, params=prepared.parameters)
    finally:
        fallback.verbose = verbose
    return NewerNetwork(tvm, built, context.linked) if newly else built, context.tasks


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
    return time_in_turns(
        [functools.partial(_runner, each, inputs, target) for each in (untuned, tuned)], turns, threads
    )


def random_inputs(module: Any, parameters: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Standard normal inputs, integers that the network can look up; the same at every call.

    Args:
        module: Relay module.
        parameters: by name; the other variables of "main" are the inputs.
    """
    generator = np.random.default_rng(0)
    variables = {str(each.name_hint): each.type_annotation for each in module["main"].params}
    kinds = {name: kind for name, kind in variables.items() if name not in parameters}
    bounds = integer_bounds(module, kinds)
    return {
        name: random_values(
            [int(extent) for extent in kind.shape], str(kind.dtype), generator, bounds.get(name)
        )
        for name, kind in kinds.items()
    }


def run_once(library: Any, inputs: dict[str, NDArray[Any]], target: Any) -> list[NDArray[Any]]:
    """The outputs of a network.

    Args:
        library: that `build_untuned` or `build_tuned` gave.
        inputs: by name.
        target: TVM target.
    """
    return _runner(library, inputs, target)[1]()


def _runner(library: Any, inputs: dict[str, NDArray[Any]], target: Any) -> Runner:
    """Functions that time a network once, and that run it and give its outputs."""
    tvm = load_tvm()
    from tvm.contrib import graph_executor

    device = tvm.device(str(target.kind.name), 0)
    executor = graph_executor.GraphModule(library["default"](device))
    executor.set_input(**inputs)
    timer = executor.module.time_evaluator("run", device, number=1, repeat=1, min_repeat_ms=RUNS_MS)

    def run() -> None:
        executor.run()
        device.sync()

    def outputs_of() -> list[NDArray[Any]]:
        run()
        return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]

    return lambda: seconds_of(run, lambda: float(timer().mean)), outputs_of
