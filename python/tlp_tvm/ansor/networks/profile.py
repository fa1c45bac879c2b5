"""Built networks, operator by operator, as they run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.network.operator_times import LIMIT_S, RUNS, OperatorRuns, Ran
from tlp_tvm.tuning.network.turns import in_fresh_thread

_NO_OPERATOR = "__nop"
"""What a reshape is that changes no data."""


def profile(
    built: Sequence[Any], inputs: dict[str, NDArray[Any]], target: Any, threads: int
) -> list[list[Ran]]:
    """Run networks operator by operator, in turns.

    Args:
        built: what `relay.build` gave.
        inputs: by name; the same for all.
        target: TVM target.
        threads: to run with.

    Returns:
        The operators of each.
    """
    return in_fresh_thread(lambda: _profile(built, inputs, target), threads)


def _profile(built: Sequence[Any], inputs: dict[str, NDArray[Any]], target: Any) -> list[list[Ran]]:
    from tvm.contrib.debugger import debug_executor

    device = load_tvm().device(str(target.kind.name), 0)
    networks = []
    with tempfile.TemporaryDirectory() as folder:  # the executors dump their graphs
        for each in built:
            create = each["debug_create"]("default", device)
            executor = debug_executor.GraphModuleDebug(create, [device], each.get_graph_json(), folder)
            executor.set_input(**inputs)
            networks.append(_Profiled(executor))
        for _ in range(RUNS):
            for network in networks:
                if network.spent < LIMIT_S:
                    network.run()
    return [network.operators() for network in networks]


class _Profiled:
    """The runs of one network."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._runs = OperatorRuns()
        self.spent = 0.0

    def run(self) -> None:
        began = time.perf_counter()
        calls = [(str(call["Name"]), call) for call in self._executor.profile(collectors=[]).calls]
        durations = [(name, call["Duration (us)"].microseconds * 1e-6) for name, call in calls]
        self._runs.add([each for each in durations if each[0] != _NO_OPERATOR])
        self.spent += time.perf_counter() - began

    def operators(self) -> list[Ran]:
        return self._runs.operators()
