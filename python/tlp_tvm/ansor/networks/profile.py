"""Built networks, operator by operator, as they run."""

from __future__ import annotations

import collections
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.network.operator_times import Ran
from tlp_tvm.tuning.network.turns import in_fresh_thread

_RUNS = 60
"""Of the whole network; an operator's time is the median over them. Before each, TVM warms up with three.

On a virtual machine whose speed varies by a fifth, fifteen leave an error of 6%, where 2% decide."""

_LIMIT_S = 3.0
"""After which a network is not run again: what is slow is known well enough by fewer runs."""

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
        for _ in range(_RUNS):
            for network in networks:
                if network.spent < _LIMIT_S:
                    network.run()
    return [network.operators() for network in networks]


class _Profiled:
    """The runs of one network."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._seconds: dict[str, list[float]] = collections.defaultdict(list)
        self._counts: dict[str, int] = {}
        self.spent = 0.0

    def run(self) -> None:
        began = time.perf_counter()
        run: dict[str, float] = collections.defaultdict(float)
        self._counts = collections.Counter()
        for call in self._executor.profile(collectors=[]).calls:
            name = str(call["Name"])
            run[name] += call["Duration (us)"].microseconds * 1e-6
            self._counts[name] += 1
        for name, total in run.items():
            self._seconds[name].append(total)
        self.spent += time.perf_counter() - began

    def operators(self) -> list[Ran]:
        return [
            Ran(name, self._counts[name], statistics.median(totals) / self._counts[name])
            for name, totals in self._seconds.items()
            if name != _NO_OPERATOR
        ]
