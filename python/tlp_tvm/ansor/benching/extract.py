"""How fast does the native reader embed states, compared with the alternatives?

Set-up: random programs of one task, sampled by Ansor. Per layout, the native reader runs repeatedly over the
same states (warm: in the caches as far as they fit), with one thread and with all, and once over states that
nothing has read before (fresh). Output goes to one reused array.
Baselines, same states, same run: TVM's per-store features, which Ansor's own cost model reads; and the Python
route: TVM serialises each state, `json.loads`, a plain encoder. All take turns, except for the fresh pass.
Checked before timing: the native embedding equals the Python route's in every number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.reading import states as ansor_states
from tlp_tvm.ansor.search.sampling import sample_states, written_steps
from tlp_tvm.bench.extract_result import ExtractResult, NativeRate
from tlp_tvm.bench.python_route import PythonEncoder
from tlp_tvm.bench.timing import Work, best_rates, rate_of
from tlp_tvm.embedding import Embedding
from tlp_tvm.layout import FeatureLayout

CPU_TARGET = "llvm -mcpu=core-avx2 -num-cores=2"
CUDA_TARGET = "cuda -arch=sm_70"

LAYOUTS = {"llvm": ("paper-cpu", "ansor"), "cuda": ("paper-gpu", "ansor")}
"""Layouts timed per kind of target; the Python route encodes the first."""

STATES_FOR_TVM_FEATURES = {"llvm": 512, "cuda": 128}
"""TVM's features take milliseconds per state; a subset is enough for a rate."""

THREADS = {"one": 1, "all": 0}
"""Threads of the native reader; 0 for all cores."""

FRESH_AT_MOST = {"cuda": 2000}
"""TVM needs some 18 ms to sample a state for a GPU, far more than for a CPU."""


def bench_extract(
    task_name: str,
    target: str,
    *,
    states: int = 2000,
    fresh: int = 0,
    seconds: float = 1.0,
    progress: Callable[[str], None] = lambda _: None,
) -> ExtractResult:
    """Measure one task.

    Args:
        task_name: one of `tlp_tvm.ansor.networks.tasks.OPERATORS`.
        target: a TVM target; "cuda" needs no GPU.
        states: number of states for the warm passes and the baselines.
        fresh: number of new states for each layout's first pass; limited by `FRESH_AT_MOST`.
        seconds: per rate.
        progress: receives a line before each phase.
    """
    tvm = load_tvm()
    kind = tvm.target.Target(target).kind.name
    fresh = min(fresh, FRESH_AT_MOST.get(kind, fresh))
    layouts = [FeatureLayout.preset(name) for name in LAYOUTS[kind]]
    task = operator_task(task_name, target)
    reader = ansor_states.reader()

    progress(f"{task_name} on {kind}: sampling {states} states")
    array = ansor_states.as_array(sample_states(task, states, seed=1))
    count = len(array)
    python_features = _python_route(task, array, layouts[0])
    native_features = ansor_states.encode(array, layouts[0])
    if not np.array_equal(python_features, native_features):
        raise AssertionError("the two routes differ")
    primitives = float(np.mean([len(steps) for steps in ansor_states.steps(array)]))

    some = [array[i] for i in range(min(count, STATES_FOR_TVM_FEATURES[kind]))]
    features = tvm.auto_scheduler.feature.get_per_store_features_from_states
    works = {
        "python": Work(lambda: _python_route(task, array, layouts[0]), count),
        "tvm": Work(lambda: features(some, task), len(some)),
    }
    for layout in layouts:
        out = np.zeros((count, layout.length, layout.width), np.float32)
        for how, threads in THREADS.items():
            works[f"{layout.name}, {how}"] = Work(
                partial(reader.encode, array.handle.value, layout.encoder, out, threads), count
            )
    progress(f"{task_name} on {kind}: native reader, Python route, TVM's per-store features")
    rates = best_rates(works, seconds=seconds)

    native = []
    for number, layout in enumerate(layouts):
        one, every = (rates[f"{layout.name}, {how}"] for how in THREADS)
        first, read = 0.0, 0
        if fresh:
            first, read = _fresh_rate(task, layout, fresh, seed=2 + number, progress=progress)
        native.append(NativeRate(layout.name, one, every, first, read))
    return ExtractResult(
        task=task_name,
        target=target,
        states=count,
        primitives=primitives,
        native=native,
        python_route=rates["python"],
        tvm_features=rates["tvm"],
    )


def _fresh_rate(
    task: Any, layout: FeatureLayout, count: int, *, seed: int, progress: Callable[[str], None]
) -> tuple[float, int]:
    """The rate of one pass over states not read since they were sampled, and their number."""
    progress(f"{task.desc}: sampling {count} new states for {layout.name}")
    bunch = min(count, 4000)  # one seed each
    states: list[Any] = []
    while len(states) < count:
        states += sample_states(task, bunch, seed=seed * 1000 + len(states))
    array = ansor_states.as_array(states)
    out = np.zeros((len(states), layout.length, layout.width), np.float32)
    out.fill(1.0)  # allocate the pages before the clock starts
    # Sampling many bunches, and this copy, evict the early states from every cache.
    _flush_caches()
    reader = ansor_states.reader()
    rate = rate_of(
        lambda: reader.encode(array.handle.value, layout.encoder, out, 0), len(states), seconds=0, least=1
    )
    return rate.best, len(states)


def _flush_caches() -> None:
    """Write more memory than any cache holds."""
    np.zeros(64 << 20, np.int64).fill(1)


def _python_route(task: Any, array: Any, layout: FeatureLayout) -> Embedding:
    """Embed without native code: TVM writes each state, Python reads and encodes it."""
    encoder = PythonEncoder(layout)
    return np.stack([encoder.encode(written_steps(task, array[i])) for i in range(len(array))])
