"""How fast are MetaSchedule's candidates embedded, beside what one would do without the native reader?

Set-up: random programs of one task, sampled by MetaSchedule, handed over as its search does; the native
reader over the same candidates again and again, with one thread and with all. Output goes to one array,
reused. The routes take turns; the best of each counts.
Baselines, same candidates, same run: the Python route, TVM's `Trace.as_json` of each, its text by
`json.dumps` and `json.loads`, a plain encoder; and the same text read and encoded natively, what is left
where TVM's objects cannot be read.
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
    """Per candidate, mean."""
    one_thread: float
    every_thread: float
    python_route: float
    """`Trace.as_json`, `json.dumps`, `json.loads`, an encoder in Python."""
    json_route: float
    """`Trace.as_json`, `json.dumps`, reading and encoding the text natively."""

    @property
    def ratio(self) -> float:
        """How many times faster all threads are than the Python route."""
        return self.every_thread / self.python_route

    @property
    def json_ratio(self) -> float:
        """How many times faster all threads are than the text read natively."""
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
        count: how many candidates to sample; TVM's search hands over 512 at a time.
        seconds: to spend on each rate.
        progress: gets a line before each phase.
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
    """How many times sooner all threads have one candidate of each result than `route`, a name of a rate."""
    theirs = math.fsum(1 / getattr(each, route) for each in results)
    return theirs / math.fsum(1 / each.every_thread for each in results)
