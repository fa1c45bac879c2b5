"""How fast are MetaSchedule's candidates embedded, beside what one would do without the native reader?

Set-up: random programs of one task, sampled by MetaSchedule, handed over as its search does; the native
reader over the same candidates again and again, with one thread and with all. Output goes to one array,
reused.
Baseline, same candidates, same run: TVM's `Trace.as_json` of each, its text by `json.dumps`, and our own
reader and encoder of that text, which are native: a plain encoder in Python would be slower.
Checked before timing: both routes give the same embedding, in every number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tlp_tvm.bench.timing import rate_of
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
    as_json: float
    """`Trace.as_json`, `json.dumps`, reading and encoding the text."""

    @property
    def ratio(self) -> float:
        """How many times faster all threads are than the JSON route."""
        return self.every_thread / self.as_json

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio}


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
        task_name: one of `tlp_tvm.metaschedule.workloads.WORKLOADS`.
        kind: one of `tlp_tvm.bench.traces.TARGET_KINDS`.
        count: how many candidates to sample; TVM's search hands over 512 at a time.
        seconds: to spend on each rate.
        progress: gets a line before each phase.
    """
    from tlp_tvm.metaschedule import traces

    layout = FeatureLayout.preset("metaschedule")
    progress(f"{task_name} on {kind}: sampling {count} candidates")
    _, array = candidates(task_name, kind, count, seed=1)
    out = np.zeros((count, layout.length, layout.width), np.float32)
    progress(f"{task_name} on {kind}: checking the embeddings")
    if not np.array_equal(traces.encode(array, layout), traces.encode_through_json(array, layout)):
        raise AssertionError("the two routes differ")
    primitives = float(np.mean([len(steps) for steps in traces.steps(array)]))
    progress(f"{task_name} on {kind}: timing")
    one, every = (
        rate_of(
            lambda threads=threads: traces.encode(array, layout, threads=threads, out=out),  # type: ignore[misc]
            count,
            seconds=seconds,
        ).best
        for threads in (1, 0)
    )
    slow = rate_of(
        lambda: traces.encode_through_json(array, layout, out=out), count, seconds=seconds, least=2
    )
    return TraceExtractResult(task_name, kind, layout.name, count, primitives, one, every, slow.best)
