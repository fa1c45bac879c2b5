"""How many candidates per second does the model score, compared with MetaSchedule's own cost model?

Set-up: random programs of one task, sampled by MetaSchedule. Ours is `TLPCostModel.predict`: reading the
traces, embedding them, the network.
Baseline: TVM's `ms.cost_model.XGBModel.predict`: its PerStoreFeature extractor, then the trees, which are
trained on other programs with synthetic latencies that follow our model's scores. Both score the same
candidates, take turns in the same run, and use the same number of threads.
Checked before timing: both score each candidate with a finite number, and the baseline is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tlp_tvm.bench.score_result import ScoreResult
from tlp_tvm.bench.timing import costs_of
from tlp_tvm.metaschedule.benching.sampled import candidates

TRAINED_ON = 128
"""Programs that the trees are trained on."""


def bench_score_traces(
    task_name: str,
    kind: str,
    *,
    count: int = 512,
    model: str,
    threads: int = 0,
    rounds: int = 3,
    progress: Callable[[str], None] = lambda _: None,
) -> ScoreResult:
    """Measure one task.

    Args:
        task_name: one of `tlp_tvm.metaschedule.networks.workloads.WORKLOADS`.
        kind: one of `tlp_tvm.bench.traces.TARGET_KINDS`.
        count: number of candidates.
        model: what `tlp_tvm.load_model` takes.
        threads: of both models, on as many cores; 0 for all cores of this process.
        rounds: repeats of each model.
        progress: receives a line before each phase.
    """
    from tlp_tvm.bench.cores import cores
    from tlp_tvm.metaschedule.loading.targets import flags_of
    from tlp_tvm.metaschedule.reading.traces import extract_traces
    from tlp_tvm.metaschedule.search.cost_model import TLPCostModel
    from tlp_tvm.model.checkpoint import load_model
    from tlp_tvm.model.scoring import platform_or_mean

    progress(f"{task_name} on {kind}: sampling {count} candidates")
    context, array = candidates(task_name, kind, count, seed=1)
    scorer = load_model(model)
    ours = TLPCostModel(scorer, platform_or_mean(scorer, flags_of(context.target)), device="cpu")
    with cores(threads) as used:
        progress(f"{task_name} on {kind}: training TVM's model")
        baseline, trees = _trained_baseline(task_name, kind, ours, used)
        progress(f"{task_name} on {kind}: checking the scores")
        for whose in (ours, baseline):
            scores = np.asarray(whose.predict(context, array))
            if scores.shape != (count,) or not np.isfinite(scores).all():
                raise AssertionError(f"expected {type(whose).__name__} to score each candidate")
        progress(f"{task_name} on {kind}: timing, {rounds} rounds")
        costs = costs_of(
            {
                "ours": lambda: ours.predict(context, array),
                "embedding": lambda: extract_traces(array, ours.model.layout),
                "xgb": lambda: baseline.predict(context, array),
            },
            rounds=rounds,
        )
    rates = {name: count / cost.seconds for name, cost in costs.items()}
    return ScoreResult(
        task=task_name,
        target=kind,
        model=model,
        programs=count,
        threads=used,
        rounds=rounds,
        trees=trees,
        cpu_ratio=costs["xgb"].cpu_seconds / costs["ours"].cpu_seconds,
        **rates,
    )


def _trained_baseline(task_name: str, kind: str, ours: Any, threads: int) -> tuple[Any, int]:
    """TVM's model, trained on programs of another seed, and its number of trees."""
    from tvm.s_tir import meta_schedule as ms

    context, array = candidates(task_name, kind, TRAINED_ON, seed=2)
    scores = np.asarray(ours.scores(context, array), np.float64)
    spread = (scores - scores.mean()) / (scores.std() or 1.0)
    results = [ms.runner.RunnerResult([float(seconds)], None) for seconds in 1e-3 * np.exp(-spread)]
    baseline = ms.cost_model.XGBModel(
        extractor=ms.feature_extractor.PerStoreFeature(), num_warmup_samples=0, num_tuning_cores=threads
    )
    baseline.update(context, list(array), results)
    if baseline.booster is None:
        raise AssertionError("expected TVM's model to be trained")
    return baseline, int(baseline.booster.num_boosted_rounds())
