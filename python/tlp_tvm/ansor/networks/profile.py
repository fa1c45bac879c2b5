"""Built networks, operator by operator, as they run."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
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
            graph, create = each.get_graph_json(), each["debug_create"]("default", device)
            executor = debug_executor.GraphModuleDebug(create, [device], graph, folder)
            executor.set_input(**inputs)
            waits = device.sync if target.kind.name != "llvm" else _no_wait
            networks.append(_Profiled(create["execute_node"], graph, waits))
        for _ in range(1 + RUNS):
            for network in networks:
                if network.spent < LIMIT_S:
                    network.run()
    return [network.runs.operators() for network in networks]


class _Profiled:
    """The runs of one network, node by node.

    TVM's own profile runs a network three times before it times it once.
    """

    def __init__(self, execute: Callable[[int], None], graph: str, wait: Callable[[], None]) -> None:
        self._execute, self._wait = execute, wait
        functions = [str(node.get("attrs", {}).get("func_name", "")) for node in json.loads(graph)["nodes"]]
        self._operators = [(i, name) for i, name in enumerate(functions) if name not in ("", _NO_OPERATOR)]
        self._count = 0
        self.runs = OperatorRuns()
        self.spent = 0.0

    def run(self) -> None:
        """Time every operator once."""
        began = time.perf_counter()
        self._execute(0)  # an input; after a node that comes later, a network begins anew
        calls = [(name, self._seconds(i)) for i, name in self._operators]
        call = self._seconds(self._operators[-1][0])  # what was just executed is not executed again
        if self._count == 1:  # the first run finds nothing in the caches
            self.runs = OperatorRuns()
        self.runs.add([(name, max(seconds - call, 0.0)) for name, seconds in calls])
        self._count += 1
        self.spent += time.perf_counter() - began

    def _seconds(self, node: int) -> float:
        began = time.perf_counter()
        self._execute(node)
        self._wait()
        return time.perf_counter() - began


def _no_wait() -> None:
    """A CPU is done when it returns."""
