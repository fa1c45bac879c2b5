"""How many traces per second are bred, embedded and scored, compared with TVM's evolution?

Set-up: random programs of one operator, drawn by MetaSchedule, are the parents; every generation is bred of
them.
Baseline: TVM's `EvolutionarySearch` of as many programs with the same model, four generations of 512. Its
rate counts the programs that it asks scores of, ours the children that differ from all others. Both use the
same cores and threads in the same run, in turns.
Checked before timing: TVM replays some children, and sees the steps and the embedding that were bred.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tlp_tvm.bench.breed_rates import BreedCase, bench_case
from tlp_tvm.bench.breed_result import BreedResult
from tlp_tvm.metaschedule.breeding.trace_stock import TraceStock
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import flags_of
from tlp_tvm.metaschedule.networks.workloads import TARGETS, workload
from tlp_tvm.metaschedule.reading.traces import extract_traces
from tlp_tvm.metaschedule.search.cost_model import TLPCostModel
from tlp_tvm.metaschedule.search.tvms_sample import drawn, ready_search
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.scoring import ScoringModel, platform_or_mean

POPULATION, GENERATIONS = 512, 4
"""Of TVM's evolution, as its users have it."""

WANTED = 64
"""Programs that TVM's evolution is asked for, as its users have it."""


class OperatorTask:
    """An operator, as a search takes a task."""

    def __init__(self, name: str, kind: str) -> None:
        """Make it.

        Args:
            name: one of `tlp_tvm.metaschedule.networks.workloads.WORKLOADS`.
            kind: one of `TARGETS`.
        """
        tvm = load_tvm()
        self.id = self.workload_key = name
        self.module = tvm.IRModule({"main": workload(name)})
        self.target = tvm.target.Target(TARGETS[kind])


def bench_breed_traces(
    name: str,
    kind: str,
    *,
    count: int,
    model: str,
    threads: int = 0,
    rounds: int = 3,
    progress: Callable[[str], None] = lambda _: None,
) -> BreedResult:
    """Measure one operator.

    Args:
        name: one of `tlp_tvm.metaschedule.networks.workloads.WORKLOADS`.
        kind: of target, one of `TARGETS`; "cuda" needs no GPU.
        count: children of a generation.
        model: what `tlp_tvm.load_model` takes, whose network is native.
        threads: of both, on as many cores; 0 for all cores of this process.
        rounds: repeats of each; the best counts.
        progress: receives a line before each phase.
    """
    task: Any = OperatorTask(name, kind)
    scorer, target = load_model(model), flags_of(task.target)
    platform = platform_or_mean(scorer, target)
    case = BreedCase(
        name,
        target,
        lambda used: TraceStock(task, 1, threads=used),
        extract_traces,
        all_replay=False,
        tvms=lambda used: _tvms(task, scorer, platform, used, rounds),
    )
    how: dict[str, Any] = {"threads": threads, "rounds": rounds, "progress": progress}
    return bench_case(case, scorer, platform, model=model, count=count, **how)


def _tvms(task: Any, scorer: ScoringModel, platform: str, threads: int, rounds: int) -> tuple[float, float]:
    """Programs a second of TVM's evolution, and the share of its time that scoring takes."""
    load_tvm()
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.cost_model import PyCostModel
    from tvm_ffi import get_global_func

    model = TLPCostModel(scorer, platform)
    asked, seconds = [0], [0.0]

    @derived_object
    class Counting(PyCostModel):  # type: ignore[misc]
        def predict(self, context: Any, candidates: Any) -> Any:
            begin = time.perf_counter()
            scores = model.predict(context, candidates)
            seconds[0] += time.perf_counter() - begin
            asked[0] += len(candidates)
            return scores

        def load(self, _path: str) -> None:
            """Nothing to load."""

        def save(self, _path: str) -> None:
            """Nothing to save."""

        def update(self, _context: Any, _candidates: Any, _results: Any) -> None:
            """It does not learn."""

    context = ready_search(task, 1, POPULATION, threads, model=Counting(), generations=GENERATIONS)
    start = drawn(context, POPULATION // 2)
    evolve = get_global_func("s_tir.meta_schedule.SearchStrategyEvolutionarySearchEvolveWithCostModel")
    best = 0.0, 0.0
    for _ in range(rounds):
        asked[0], seconds[0] = 0, 0.0
        begin = time.perf_counter()
        evolve(context.search_strategy, start, WANTED)
        taken = time.perf_counter() - begin
        best = max(best, (asked[0] / taken, seconds[0] / taken))
    return best
