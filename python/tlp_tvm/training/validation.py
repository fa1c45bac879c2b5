"""How well weights rank programs that they are not trained on."""

from __future__ import annotations

import numpy as np
import torch

from tlp_tvm.dataset.records import MeasuredDataset
from tlp_tvm.evaluation.ranking import spearman
from tlp_tvm.evaluation.report import ranked_tasks
from tlp_tvm.evaluation.topk import mean_top_k
from tlp_tvm.model.scoring import BATCH
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.batches import made_ahead
from tlp_tvm.training.peers import ALONE, Peers


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
    network = TLP.with_weights(settings, weights)
    scores = torch.zeros((len(dataset), settings.heads), device=device)
    begins = range(peers.rank * BATCH, len(dataset), peers.count * BATCH)
    parts = (np.arange(begin, min(begin + BATCH, len(dataset))) for begin in begins)
    with torch.inference_mode():
        for begin, x in zip(begins, made_ahead(dataset.features, parts), strict=True):
            scores[begin : begin + len(x)] = network(torch.from_numpy(x).to(device))
        found = peers.over_all(scores).cpu().numpy()
    tasks = [
        task
        for column in range(settings.heads)
        for task in ranked_tasks(dataset, found[:, column], column)
        if task is not None
    ]
    top1, top5 = mean_top_k(tasks, 1), mean_top_k(tasks, 5)
    correlation = float(np.mean([spearman(task.scores, -task.latencies) for task in tasks]))
    return {"top1": top1, "top5": top5, "spearman": correlation, "score": (top1 + top5) / 2}
