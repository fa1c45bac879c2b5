"""How many candidates a second does MetaSchedule's search get scores for, beside its own cost model?

Set-up: random programs of one task, sampled by MetaSchedule. Ours is `TLPCostModel.predict`: reading the
traces, embedding them, the network. The baseline is TVM's `ms.cost_model.XGBModel.predict`: its
PerStoreFeature extractor, then the trees, which are trained on other programs with made-up latencies that
follow our model's scores. Both have the same candidates, take turns in the same run, and have the same
number of threads.
Without a model, an untrained one of the recipe's sizes stands in for it: the scores mean nothing, the time
is that of a trained one.
Checked before timing: each candidate has a finite score of both, and the baseline is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tlp_tvm.bench.timing import costs_of
from tlp_tvm.bench.traces import candidates
from tlp_tvm.layout import FeatureLayout

if TYPE_CHECKING:
    from tlp_tvm.model.scoring import ScoringModel

TRAINED_ON = 128
"""Programs that the trees are trained on."""

UNTRAINED = "untrained, of the recipe's sizes"


@dataclass(frozen=True)
class TraceScoreResult:
    """Rates in candidates per second, best of the rounds."""

    task: str
    target: str
    model: str
    candidates: int
    threads: int
    rounds: int
    ours: float
    """`TLPCostModel.predict`."""
    embedding: float
    """Only reading and embedding the traces, a part of it."""
    xgb: float
    """`ms.cost_model.XGBModel.predict`, its features included."""
    cpu_ratio: float
    """How many times less processor time ours takes."""

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.ours / self.xgb

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio}


def untrained_model() -> ScoringModel:
    """A model with random weights in the layout of MetaSchedule."""
    import torch

    from tlp_tvm.dataset.records import Platform
    from tlp_tvm.model.config import describe
    from tlp_tvm.model.scoring import ScoringModel
    from tlp_tvm.model.tlp import TLP, TLPSettings
    from tlp_tvm.training.recipe import MODELS

    layout = FeatureLayout.preset("metaschedule")
    settings = TLPSettings.of_layout(layout, 1, **MODELS["recipe"])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = TLP(settings).eval()
    about = describe(
        layout,
        settings,
        [Platform("untrained", "llvm")],
        data={"digest": "0" * 64},
        training={"epochs": 0},
        seed=0,
        metrics={},
    )
    return ScoringModel(UNTRAINED, about, network)


def bench_score_traces(
    task_name: str,
    kind: str,
    *,
    count: int = 512,
    model: str | None = None,
    threads: int = 0,
    rounds: int = 3,
    progress: Callable[[str], None] = lambda _: None,
) -> TraceScoreResult:
    """Measure one task.

    Args:
        task_name: one of `tlp_tvm.metaschedule.workloads.WORKLOADS`.
        kind: one of `tlp_tvm.bench.traces.TARGET_KINDS`.
        count: how many candidates to sample.
        model: what `tlp_tvm.load_model` takes; None for an untrained one.
        threads: of both models, on as many cores; 0 for every core of this process.
        rounds: turns of each model.
        progress: gets a line before each phase.
    """
    from tlp_tvm.bench.cores import cores
    from tlp_tvm.features import extract_traces
    from tlp_tvm.metaschedule.cost_model import TLPCostModel
    from tlp_tvm.model.checkpoint import load_model

    progress(f"{task_name} on {kind}: sampling {count} candidates")
    context, array = candidates(task_name, kind, count, seed=1)
    ours = TLPCostModel(load_model(model) if model else untrained_model(), "mean", device="cpu")
    with cores(threads) as used:
        progress(f"{task_name} on {kind}: training TVM's model")
        baseline = _trained_baseline(task_name, kind, ours, used)
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
    return TraceScoreResult(
        task=task_name,
        target=kind,
        model=model or UNTRAINED,
        candidates=count,
        threads=used,
        rounds=rounds,
        cpu_ratio=costs["xgb"].cpu_seconds / costs["ours"].cpu_seconds,
        **rates,
    )


def _trained_baseline(task_name: str, kind: str, ours: Any, threads: int) -> Any:
    """TVM's model, trained on programs of another seed."""
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
    return baseline
