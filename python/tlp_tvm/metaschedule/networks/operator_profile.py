"""A compiled Relax network, operator by operator, as it runs."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import NDArray

from tlp_tvm.metaschedule.graph.fusing import PACKED
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import device_of
from tlp_tvm.metaschedule.reading.workload_key import workload_key
from tlp_tvm.tuning.network.operator_times import LIMIT_S, RUNS, OperatorRuns, Ran
from tlp_tvm.tuning.network.turns import in_fresh_thread

_WARM_UP = 3

_BUILTIN = "vm."
"""Begin of the names of what the virtual machine does itself: it allocates, and gives shapes and results."""


def profile(library: Any, inputs: dict[str, NDArray[Any]], target: Any, threads: int) -> list[Ran]:
    """Run a network operator by operator.

    Args:
        library: that `end_to_end.compiled` gave.
        inputs: in order.
        target: TVM's target.
        threads: to run with.

    Returns:
        Its operators; without what the virtual machine does itself.
    """
    return in_fresh_thread(lambda: _profile(library, inputs, target), threads)


def functions_of(module: Any) -> dict[str, str]:
    """What the functions of a network compute.

    Args:
        module: that `fusing.fused` gave.

    Returns:
        Name of a function to the workload key of its task.
    """
    tvm = load_tvm()
    from tvm_ffi import get_global_func

    normalised = get_global_func("tvm.s_tir.meta_schedule.normalize_mod")
    return {
        str(name.name_hint): workload_key(normalised(function))
        for name, function in module.functions.items()
        if isinstance(function, tvm.tirx.PrimFunc)
    }


def _profile(library: Any, inputs: dict[str, NDArray[Any]], target: Any) -> list[Ran]:
    tvm = load_tvm()
    from tvm import relax

    device = device_of(str(target.kind.name))
    machine = relax.VirtualMachine(library, device)
    given = [tvm.runtime.tensor(array, device) for array in inputs.values()]
    for _ in range(_WARM_UP):
        machine["main"](*given)
    clock, runs = _Clock(device), OperatorRuns()
    machine.set_instrument(clock.tell)
    began = time.perf_counter()
    for _ in range(RUNS):
        clock.calls.clear()
        machine["main"](*given)
        runs.add(clock.calls)
        if time.perf_counter() - began > LIMIT_S:
            break
    return runs.operators()


class _Clock:
    """Hears of each function of a network as it begins and ends."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._began = 0.0
        self.calls: list[tuple[str, float]] = []

    def tell(self, _function: Any, name: str, before: bool, *_: Any) -> int:
        """What the virtual machine calls; 0 is to go on."""
        if before:
            self._device.sync()
            self._began = time.perf_counter()
        elif not name.startswith(_BUILTIN):
            self._device.sync()
            self.calls.append((name.removesuffix(PACKED), time.perf_counter() - self._began))
        return 0
