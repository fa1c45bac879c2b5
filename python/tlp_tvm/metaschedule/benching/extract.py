"""How fast does the native reader embed MetaSchedule's candidates, compared with the alternatives?

Set-up: random programs of one task, sampled by MetaSchedule and passed as its search does. The native reader
runs repeatedly over the same candidates, with one thread and with all. Output goes to one reused array. The
routes take turns; the best repeat of each counts.
Baselines, same candidates, same run: the Python route, `Trace.as_json`, `json.dumps`, `json.loads` and a
plain encoder; and the JSON route, which reads and encodes the same text natively and works with any TVM.
Checked before timing: all routes give the same embedding, the native ones in every number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlp_tvm.bench.extract_result import TraceExtractResult
from tlp_tvm.bench.python_route import PythonAlignedEncoder
from tlp_tvm.bench.timing import Work, best_rates
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.benching.sampled import candidates
from tlp_tvm.metaschedule.benching.trace_route import steps_of


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
    from tlp_tvm.metaschedule.reading.traces import LAYOUT

    layout = FeatureLayout.preset(LAYOUT)
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
