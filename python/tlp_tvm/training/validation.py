"""How well weights rank programs that they are not trained on."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tlp_tvm.dataset.ranking import ranked_everywhere, ranking_rows
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.metrics.correlation import spearman
from tlp_tvm.metrics.ranked_groups import MEAN_OVER_TASKS, RankingRow
from tlp_tvm.metrics.topk import mean_top_k
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.batches import made_ahead, parts_of
from tlp_tvm.training.peers import ALONE, Peers

AT_ONCE = 2048
"""Programs whose embeddings are made together."""


def validate(
    weights: dict[str, torch.Tensor],
    settings: TLPSettings,
    dataset: MeasuredDataset,
    device: torch.device,
    peers: Peers = ALONE,
) -> dict[str, float]:
    """Means over tasks and platforms; tasks without a label on a platform are left out there.

    Every process scores its share of the programs, and all of them know the outcome.
    """
    network = TLP.with_weights(settings, weights).to(device)
    scores = torch.zeros((len(dataset), settings.heads), device=device)
    begins = range(peers.rank * AT_ONCE, len(dataset), peers.count * AT_ONCE)
    some = (np.arange(begin, min(begin + AT_ONCE, len(dataset))) for begin in begins)
    make = partial(parts_of, dataset, device=device, cut=not settings.faithful)
    with torch.inference_mode():
        for begin, (order, parts) in zip(begins, made_ahead(make, some), strict=True):
            scores[begin + torch.from_numpy(order)] = torch.cat([network(x) for x in parts])
        found = peers.over_all(scores).cpu().numpy()
    tasks = ranked_everywhere(dataset, found)
    top1, top5 = mean_top_k(tasks, 1), mean_top_k(tasks, 5)
    correlation = float(np.mean([spearman(task.scores, -task.latencies) for task in tasks]))
    return {"top1": top1, "top5": top5, "spearman": correlation, "score": (top1 + top5) / 2}


def card_rows(dataset: MeasuredDataset, scores: NDArray[Any], *, chose: bool) -> list[RankingRow]:
    """What a model's card says of tasks that it was not trained on.

    Args:
        dataset: the tasks.
        scores: (N, P), of every program on every platform.
        chose: whether they chose the epoch. They are held out at random, so they may lack a platform, and
            their mean says enough of them.

    Raises:
        DatasetError: as `ranked_groups`.
    """
    rows = ranking_rows(dataset, scores, where_measured=chose)
    return [row for row in rows if not chose or row.network == MEAN_OVER_TASKS]
