"""The whole network, compiled as it comes and with a database's best records, side by side."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.metaschedule.compiling.building import CODE, way
from tlp_tvm.metaschedule.graph.fusing import fused, is_cpu, with_programs
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import device_of
from tlp_tvm.tuning.network.turns import RUNS_MS, EndToEnd, Runner, random_values, seconds_of, time_in_turns


def compiled(
    module: Any, parameters: dict[str, Any], target: Any, database: Any = None, code: str = CODE
) -> Any:
    """Compile a network.

    Args:
        module: Relax module.
        parameters: by name.
        target: TVM's target.
        database: `ms.Database` with records of its tasks; None for TVM's own schedules.
        code: how programs become machine code, as `measuring.pool.MeasureSettings` has it.
    """
    tvm = load_tvm()
    from tvm import relax
    from tvm.relax.backend.cpu_generic.pipeline import dataflow_lower_passes, finalize_passes
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.relax_integration import compile_relax

    records = ms.database.MemoryDatabase() if database is None else database
    if not is_cpu(target):
        return compile_relax(records, module, target, parameters)
    bound = relax.transform.BindParams("main", parameters)(module)
    known = with_programs(fused(bound, target), target, records)
    lowered = tvm.transform.Sequential([*dataflow_lower_passes(target), *finalize_passes(target)])
    with target, tvm.transform.PassContext(opt_level=3):
        pipeline = way(tvm, target, code)
        return relax.build(known, target=target, relax_pipeline=lowered, tir_pipeline=pipeline)


def random_inputs(module: Any) -> dict[str, NDArray[Any]]:
    """Arrays for the inputs of a network, in order; the same at every call.

    Args:
        module: Relax module whose parameters are bound, so that only inputs are left.
    """
    generator = np.random.default_rng(0)
    return {
        str(variable.name): random_values(
            [int(extent) for extent in variable.ty.shape],
            str(getattr(variable.ty.dtype, "dtype", variable.ty.dtype)),
            generator,
        )
        for variable in module["main"].params
    }


def compare(
    untuned: Any, tuned: Any, inputs: dict[str, NDArray[Any]], target: Any, turns: int, threads: int
) -> EndToEnd:
    """Run both in turns on the same input.

    Args:
        untuned: that `compiled` gave.
        tuned: the same, with records.
        inputs: in order.
        target: TVM's target.
        turns: timings of each.
        threads: to run with.
    """
    device = device_of(str(target.kind.name))
    return time_in_turns(
        [functools.partial(_runner, each, inputs, device) for each in (untuned, tuned)], turns, threads
    )


def run_once(library: Any, inputs: dict[str, NDArray[Any]], target: Any) -> list[NDArray[Any]]:
    """The outputs of a network.

    Args:
        library: that `compiled` gave.
        inputs: in order.
        target: TVM's target.
    """
    return _runner(library, inputs, device_of(str(target.kind.name)))[1]()


def arrays_of(output: Any) -> list[NDArray[Any]]:
    """What a network gave, as arrays."""
    return [output.numpy()] if hasattr(output, "numpy") else [each.numpy() for each in output]


def _runner(library: Any, inputs: dict[str, NDArray[Any]], device: Any) -> Runner:
    """Functions that time a network once, and that run it and give its outputs."""
    tvm = load_tvm()
    from tvm import relax

    machine = relax.VirtualMachine(library, device)
    given = [tvm.runtime.tensor(array, device) for array in inputs.values()]
    timer = machine.time_evaluator("main", device, number=1, repeat=1, min_repeat_ms=RUNS_MS)

    def run() -> None:
        machine["main"](*given)
        device.sync()

    def seconds() -> float:
        return seconds_of(run, lambda: float(timer(*given).mean))

    return seconds, lambda: arrays_of(machine["main"](*given))
