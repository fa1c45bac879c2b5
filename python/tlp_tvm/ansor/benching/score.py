"""How many programs per second does the model score, compared with TVM's own cost model?

Set-up: random programs of one task, sampled by Ansor; fewer for a GPU, as TVM needs some 18 ms for one. Ours
is `TLPCostModel.predict`: reading the states, embedding them, the network.
Baseline: TVM's `XGBModel.predict`: lowering each program, its features, the trees. The trees are trained on
other programs with synthetic latencies that follow our model's scores, so that they have something to fit.
Both score the same states, take turns in the same run, and use the same cores and threads.
Checked before timing: both score each program with a finite number, or minus infinity if it is invalid; and
the baseline is trained, as it scores at random before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.reading import states as ansor_states
from tlp_tvm.ansor.reading.states import extract_states
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.bench.cores import cores
from tlp_tvm.bench.score_result import ScoreResult
from tlp_tvm.bench.timing import costs_of
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.scoring import platform_or_mean

CPU_TARGET = "llvm -mcpu=core-avx2 -num-cores=2"
CUDA_TARGET = "cuda -arch=sm_70"

TRAINED_ON = 128
"""Programs that the trees are trained on, if the search space has as many."""


def bench_score(
    task_name: str,
    target: str,
    *,
    count: int,
    model: str,
    threads: int = 0,
    rounds: int = 3,
    progress: Callable[[str], None] = lambda _: None,
) -> ScoreResult:
    """Measure one task.

    Args:
        task_name: one of `tlp_tvm.ansor.networks.tasks.OPERATORS`.
        target: a TVM target; "cuda" needs no GPU.
        count: number of programs.
        model: what `tlp_tvm.load_model` takes.
        threads: of both models, on as many cores; 0 for all cores of this process.
        rounds: repeats of each model.
        progress: receives a line before each phase.
    """
    task = operator_task(task_name, target)
    progress(f"{task_name}, {target}: sampling {count} programs")
    array = ansor_states.as_array(sample_states(task, max(count, TRAINED_ON), seed=1)[:count])
    scorer = load_model(model)
    ours = TLPCostModel(scorer, platform_or_mean(scorer, target), device="cpu")
    with cores(threads) as used:
        progress(f"{task_name}, {target}: training TVM's model")
        baseline, trees = _trained_baseline(task, ours, used)
        progress(f"{task_name}, {target}: checking the scores")
        scores, found = np.asarray(ours.predict(task, array)), np.asarray(baseline.predict(task, array))
        for whose, values in (("our model", scores), ("TVM's model", found)):
            if len(values) != len(array) or not (np.isfinite(values) | np.isneginf(values)).all():
                raise AssertionError(f"expected {whose} to score each program")
        progress(f"{task_name}, {target}: timing, {rounds} rounds")
        layout = ours.model.layout
        costs = costs_of(
            {
                "ours": lambda: ours.predict(task, array),
                "embedding": lambda: extract_states(array, layout),
                "xgb": lambda: baseline.predict(task, array),
            },
            rounds=rounds,
        )
    rates = {name: len(array) / cost.seconds for name, cost in costs.items()}
    return ScoreResult(
        task=task_name,
        target=target,
        model=model,
        programs=len(array),
        threads=used,
        rounds=rounds,
        trees=trees,
        invalid=float(np.isneginf(found).mean()),
        refused=float(np.isneginf(scores).mean()),
        cpu_ratio=costs["xgb"].cpu_seconds / costs["ours"].cpu_seconds,
        **rates,
    )


def _trained_baseline(task: Any, ours: TLPCostModel, threads: int) -> tuple[Any, int]:
    """TVM's model after training, and its number of trees."""
    auto_scheduler = load_tvm().auto_scheduler
    sampled = sample_states(task, TRAINED_ON, seed=2)
    scores = ours.scores(task, sampled).astype(np.float64)
    programs = [state for state, score in zip(sampled, scores, strict=True) if np.isfinite(score)]
    latencies = 1e-3 * np.exp(-scores[np.isfinite(scores)])
    fewer = len(programs) - 1  # a small search space has fewer than it would wait for
    baseline = auto_scheduler.XGBModel(verbose_eval=0, num_warmup_sample=min(100, fewer), seed=1)
    baseline.xgb_params["nthread"] = threads
    baseline.update(
        [auto_scheduler.MeasureInput(task, state) for state in programs],
        [auto_scheduler.MeasureResult([float(latency)], 0, "", 1.0, 1) for latency in latencies],
    )
    if baseline.bst is None or len(baseline.inputs) <= baseline.num_warmup_sample:
        raise AssertionError("expected TVM's model to be trained")
    return baseline, int(baseline.bst.num_boosted_rounds())
