"""A built network, operator by operator, as it runs."""

from __future__ import annotations

import collections
import statistics
import tempfile
from typing import Any

from numpy.typing import NDArray

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.network.operator_times import Ran
from tlp_tvm.tuning.network.turns import in_fresh_thread

_RUNS = 15
"""Of the whole network; an operator's time is the median over them."""

_NO_OPERATOR = "__nop"
"""What a reshape is that changes no data."""


def profile(built: Any, inputs: dict[str, NDArray[Any]], target: Any, threads: int) -> list[Ran]:
    """Run a network operator by operator.

    Args:
        built: that `relay.build` gave.
        inputs: by name.
        target: TVM target.
        threads: to run with.
    """
    return in_fresh_thread(lambda: _profile(built, inputs, target), threads)


def _profile(built: Any, inputs: dict[str, NDArray[Any]], target: Any) -> list[Ran]:
    from tvm.contrib.debugger import debug_executor

    device = load_tvm().device(str(target.kind.name), 0)
    create = built["debug_create"]("default", device)
    seconds: dict[str, list[float]] = collections.defaultdict(list)
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:  # it dumps the graph
        executor = debug_executor.GraphModuleDebug(create, [device], built.get_graph_json(), folder)
        executor.set_input(**inputs)
        for _ in range(_RUNS + 1):  # the first warms up
            run: dict[str, float] = collections.defaultdict(float)
            counts = collections.Counter()
            for call in executor.profile(collectors=[]).calls:
                name = str(call["Name"])
                run[name] += call["Duration (us)"].microseconds * 1e-6
                counts[name] += 1
            for name, total in run.items():
                seconds[name].append(total)
    return [
        Ran(name, counts[name], statistics.median(totals[1:]) / counts[name])
        for name, totals in seconds.items()
        if name != _NO_OPERATOR
    ]
