"""How fast does the native reader embed MetaSchedule's candidates, compared with the alternatives?

Set-up: random programs of one task, sampled by MetaSchedule and passed as its search does. The native reader
runs repeatedly over the same candidates, with one thread and with all. Output goes to one reused array. The
routes take turns; the best repeat of each counts.
Baselines, same candidates, same run: the Python route, `Trace.as_json`, `json.dumps`, `json.loads` and a
plain encoder; and the JSON route, which reads and encodes the same text natively and works with any TVM.
Checked before timing: all routes give the same embedding, the native ones in every number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tlp_tvm.bench.python_route import PythonAlignedEncoder
from tlp_tvm.bench.timing import Work, best_rates
from tlp_tvm.bench.trace_route import steps_of
from tlp_tvm.bench.traces import candidates
from tlp_tvm.layout import FeatureLayout


@dataclass(frozen=True)
class TraceExtractResult:
    """Rates in candidates per second."""

    task: str
    target: str
    layout: str
    candidates: int
    primitives: float
    """Mean per candidate."""
    one_thread: float
    every_thread: float
    python_route: float
    """`Trace.as_json`, `json.dumps`, `json.loads`, an encoder in Python."""
    json_route: float
    """`Trace.as_json`, `json.dumps`, reading and encoding the text natively."""

    @property
    def ratio(self) -> float:
        """Speedup of all threads over the Python route."""
        return self.every_thread / self.python_route

    @property
    def json_ratio(self) -> float:
        """Speedup of all threads over the JSON route."""
        return self.every_thread / self.json_route

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio, "json_ratio": self.json_ratio}


def bench_extract_traces(
    task_name: str,
    kind: str,
    *,
    count: int = 512,
    seconds: float = 1.0,
    progress: Callable[[str], None] = lambda _: None,
) -> TraceExtractResult:
    """Measure one task.

    Args:
        task_name: one of `tlp_tvm.metaschedule.networks.workloads.WORKLOADS`.
        kind: one of `tlp_tvm.bench.traces.TARGET_KINDS`.
        count: number of candidates; TVM's search passes 512 at a time.
        seconds: per rate.
        progress: receives a line before each phase.
    """
    from tlp_tvm.metaschedule.reading import traces

    layout = FeatureLayout.preset("metaschedule")
    progress(f"{task_name} on {kind}: sampling {count} candidates")
    _, array = candidates(task_name, kind, count, seed=1)
    out = np.zeros((count, layout.length, layout.width), np.float32)
    progress(f"{task_name} on {kind}: checking the embeddings")
    native = traces.encode(array, layout)
    if not np.array_equal(native, traces.encode_through_json(array, layout)):
        raise AssertionError("the routes differ")
    python = PythonAlignedEncoder(layout)

    def in_python() -> None:
        for i, candidate in enumerate(array):
            out[i] = python.encode(steps_of(candidate))

    in_python()
    if not np.allclose(native, out, rtol=1e-6, atol=0):
        raise AssertionError("the routes differ")
    primitives = float(np.mean([len(steps) for steps in traces.steps(array)]))
    progress(f"{task_name} on {kind}: timing")
    works: dict[str, Callable[[], object]] = {
        "one_thread": lambda: traces.encode(array, layout, threads=1, out=out),
        "every_thread": lambda: traces.encode(array, layout, threads=0, out=out),
        "python_route": in_python,
        "json_route": lambda: traces.encode_through_json(array, layout, out=out),
    }
    rates = best_rates({name: Work(do, count) for name, do in works.items()}, seconds=seconds)
    return TraceExtractResult(task_name, kind, layout.name, count, primitives, **rates)


def ratio_of_all(results: Sequence[TraceExtractResult], route: str) -> float:
    """Speedup of all threads over `route` for one candidate of each result."""
    theirs = math.fsum(1 / getattr(each, route) for each in results)
    return theirs / math.fsum(1 / each.every_thread for each in results)
