"""How many programs per second are bred, embedded and scored, compared with TVM's evolution?

Set-up: random programs of one task, sampled by Ansor, are the parents; every generation is bred of them.
Baseline: TVM's `SketchPolicy.evolutionary_search` of the same programs with the same model, four generations
of 512. Its rate counts the programs that it asks scores of, ours the children that differ from all others.
Both use the same cores and threads in the same run, in turns.
Checked before timing: TVM replays some children, and sees the steps and the embedding that were bred.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tlp_tvm.ansor.breeding.task_stock import TaskStock
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.reading.states import extract_states
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.sampling import drawn_states
from tlp_tvm.bench.breed_rates import CHECKED, BreedCase, bench_case
from tlp_tvm.bench.breed_result import BreedResult
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.scoring import platform_or_mean

CPU_TARGET = "llvm -mcpu=core-avx2 -num-cores=2"
CUDA_TARGET = "cuda -arch=sm_70"

POPULATION = 512
"""Of TVM's evolution, as this project's searches used it."""


class _Counting(TLPCostModel):
    """Counts what TVM asks scores of, and the time that they take."""

    asked = 0
    seconds = 0.0

    def predict(self, task: Any, states: Any) -> Any:
        begin = time.perf_counter()
        scores = super().predict(task, states)
        self.seconds += time.perf_counter() - begin
        self.asked += len(states)
        return scores


def bench_breed(
    task_name: str,
    target: str,
    *,
    count: int,
    model: str,
    threads: int = 0,
    rounds: int = 3,
    progress: Callable[[str], None] = lambda _: None,
) -> BreedResult:
    """Measure one task.

    Args:
        task_name: one of `tlp_tvm.ansor.networks.tasks.OPERATORS`.
        target: a TVM target; "cuda" needs no GPU.
        count: children of a generation.
        model: what `tlp_tvm.load_model` takes, whose network is native.
        threads: of both, on as many cores; 0 for all cores of this process.
        rounds: repeats of each; the best counts.
        progress: receives a line before each phase.
    """
    task, scorer = operator_task(task_name, target), load_model(model)
    platform = platform_or_mean(scorer, target)
    case = BreedCase(
        task_name,
        target,
        lambda _threads: TaskStock(task, 1, 256),
        extract_states,
        all_replay=True,
        tvms=lambda _threads: _tvms(task, _Counting(scorer, platform), rounds),
    )
    how: dict[str, Any] = {"threads": threads, "rounds": rounds, "progress": progress}
    return bench_case(case, scorer, platform, model=model, count=count, **how)


def _tvms(task: Any, model: _Counting, rounds: int) -> tuple[float, float]:
    """Programs a second of TVM's evolution, and the share of its time that scoring takes."""
    policy = load_tvm().auto_scheduler.SketchPolicy(
        task, model, params={"evolutionary_search_population": POPULATION}, seed=1, verbose=0
    )
    start = drawn_states(task, POPULATION // 2, 1)
    best = 0.0, 0.0
    for _ in range(rounds):
        model.asked, model.seconds = 0, 0.0
        begin = time.perf_counter()
        policy.evolutionary_search(start, CHECKED)
        seconds = time.perf_counter() - begin
        best = max(best, (model.asked / seconds, model.seconds / seconds))
    return best
