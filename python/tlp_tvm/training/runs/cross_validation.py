"""How well a recipe generalises: every task is held out once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm.dataset.ranking import ranked_everywhere
from tlp_tvm.dataset.reading.holding_out import fold_of
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.metrics.topk import random_mean_top_k
from tlp_tvm.model.scoring import pick_device
from tlp_tvm.model.tlp import TLPSettings
from tlp_tvm.training.loop import train, validate
from tlp_tvm.training.peers import ALONE, Peers
from tlp_tvm.training.train_settings import TrainSettings

FoldCallback = Callable[[int, int], None]

SPLIT_SEED = 0
"""Of the folds; the same for all recipes, so that they are compared on the same tasks."""


@dataclass(frozen=True)
class Spread:
    """A number over seeds."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The mean and the extremes."""
        return cls(float(np.mean(values)), float(min(values)), float(max(values)))


@dataclass(frozen=True)
class CrossValidation:
    """Means over the held-out tasks of all folds and over platforms; spread over seeds."""

    folds: int
    seeds: tuple[int, ...]
    top1: Spread
    top5: Spread
    spearman: Spread
    random: dict[str, float]
    """top1 and top5 of a random pick on the same tasks."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def cross_validate(
    data: MeasuredDataset,
    model: dict[str, Any],
    training: TrainSettings,
    *,
    folds: int = 5,
    seeds: Sequence[int] = (0, 1, 2),
    device: str = "auto",
    peers: Peers = ALONE,
    on_fold: FoldCallback = lambda done, total: None,
) -> CrossValidation:
    """Train on all folds but one and rank that one, for every fold and seed.

    The epoch is never chosen by the fold that is judged: the last one counts.

    Args:
        data: the tasks.
        model: fields of `TLPSettings` that the layout leaves open.
        training: how to train; its seed is replaced.
        folds: how many.
        seeds: of the weights and the order.
        device: "auto", or torch's name.
        peers: the processes that train together.
        on_fold: called with how many trainings are done, and of how many.
    """
    settings = TLPSettings.of_layout(data.layout, len(data.platforms), **model)
    place = pick_device(device)
    by_seed = []
    done = 0
    on_fold(done, folds * len(seeds))
    for seed in seeds:
        found = []
        for fold in range(folds):
            train_data, held_out = fold_of(data, fold, folds, SPLIT_SEED)
            with tempfile.TemporaryDirectory() as folder:
                of_seed = replace(training, seed=seed)
                trained = train(train_data, None, settings, of_seed, Path(folder), device=device, peers=peers)
            metrics = validate(trained.weights, settings, held_out, place, peers)
            done += 1
            on_fold(done, folds * len(seeds))
            found += [metrics] * len(held_out.tasks)  # folds count by their tasks
        by_seed.append({name: float(np.mean([each[name] for each in found])) for name in found[0]})
    spreads = {name: Spread.of([each[name] for each in by_seed]) for name in ("top1", "top5", "spearman")}
    tasks = ranked_everywhere(data, np.zeros(data.latencies.shape))
    random = {f"top{k}": random_mean_top_k(tasks, k).mean for k in (1, 5)}
    return CrossValidation(folds, tuple(seeds), random=random, **spreads)
