"""Losses over programs of several tasks on several platforms; a missing label is NaN.

A label compares programs of one task on one platform and means nothing across tasks, so the ranking losses
see one list per task and platform. Every loss is a mean over the pairs of a list, the lists of a head and the
heads. It does not grow with the length of a list or the number of labels of a platform.

Several processes may share a batch, each with some of its lists. Given `over_all`, which sums a tensor over
the processes, a loss is this process's part of the batch's loss; parts and gradients add up.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

GAIN_SCALE = 4.0
"""Relevance of a label y is 2^(GAIN_SCALE y): the best program counts about 8 times the one half as fast."""


OverAll = Callable[[Tensor], Tensor]


def _alone(counts: Tensor) -> Tensor:
    return counts


class Loss(str, Enum):
    """The objective of training."""

    MSE = "mse"
    LAMBDARANK = "lambdarank"
    PAIRWISE = "pairwise"


def lists_of(scores: Tensor, labels: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """Lay out programs as one list per task and head.

    Args:
        scores: (N, P).
        labels: (N, P), NaN where missing.
        groups: (N,) integers; programs of one list share one.

    Returns:
        Scores and labels, both (P, G, n) with n the longest list; labels are NaN where there is no program.
    """
    order = torch.argsort(groups, stable=True)
    _, counts = torch.unique_consecutive(groups[order], return_counts=True)
    group = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
    first = torch.cumsum(counts, 0) - counts
    place = torch.arange(len(group), device=counts.device) - first[group]
    shape = (scores.shape[1], len(counts), int(counts.max()) if len(counts) else 0)
    wide_scores = scores.new_zeros(shape)
    wide_labels = labels.new_full(shape, float("nan"))
    wide_scores[:, group, place] = scores[order].T
    wide_labels[:, group, place] = labels[order].T
    return wide_scores, wide_labels


def mse(
    scores: Tensor,
    labels: Tensor,
    groups: Tensor,  # noqa: ARG001 (one signature for all)
    over_all: OverAll = _alone,
) -> Tensor:
    """Mean squared error of each head over its labelled programs, averaged over heads."""
    known = ~torch.isnan(labels)
    squares = (scores - labels.nan_to_num()).square() * known
    count = over_all(known.sum(0))
    return _mean_over_heads(squares.sum(0) / count.clamp(min=1), count > 0)


def lambdarank(scores: Tensor, labels: Tensor, groups: Tensor, over_all: OverAll = _alone) -> Tensor:
    """LambdaRank within tasks: a pair's weight is the change in NDCG from swapping it.

    Burges, "From RankNet to LambdaRank to LambdaMART", MSR-TR-2010-82. The weights of a list are normalised
    to sum to 1 (so NDCG's own normaliser cancels out), and carry no gradient.
    """
    s, y = lists_of(scores, labels, groups)  # (P, G, n)
    with torch.no_grad():
        ranked = torch.argsort(s.masked_fill(torch.isnan(y), -torch.inf), dim=-1, descending=True)
        rank = torch.empty_like(ranked)
        rank.scatter_(-1, ranked, torch.arange(s.shape[-1], device=s.device).expand_as(ranked))
        discount = 1.0 / torch.log2(rank + 2.0)
        gain = torch.exp2(GAIN_SCALE * y)
        weights = (_differences(gain) * _differences(discount)).abs()
    return _mean_over_pairs(s, y, weights, over_all)


def pairwise(scores: Tensor, labels: Tensor, groups: Tensor, over_all: OverAll = _alone) -> Tensor:
    """RankNet within tasks: a pair's weight is the difference of its labels."""
    s, y = lists_of(scores, labels, groups)  # (P, G, n)
    return _mean_over_pairs(s, y, _differences(y), over_all)


def _differences(values: Tensor) -> Tensor:
    """(..., n) -> (..., n, n): value i minus value j."""
    return values.unsqueeze(-1) - values.unsqueeze(-2)


def _mean_over_pairs(s: Tensor, y: Tensor, weights: Tensor, over_all: OverAll) -> Tensor:
    """Weighted mean of log(1 + exp(s_j - s_i)) over pairs with y_i > y_j; then of lists; then of heads."""
    better = _differences(y) > 0  # false where a label is missing
    weights = torch.where(better, weights, torch.zeros_like(weights))
    total = weights.sum((-1, -2))  # (P, G)
    losses = (weights * F.softplus(-_differences(s))).sum((-1, -2)) / total.clamp(min=1e-12)
    has_pairs = total > 0
    lists = over_all(has_pairs.sum(1))
    heads = (losses * has_pairs).sum(1) / lists.clamp(min=1)
    return _mean_over_heads(heads, lists > 0)


def _mean_over_heads(losses: Tensor, counted: Tensor) -> Tensor:
    """Mean over the heads that have labels in this batch; 0 if none has."""
    return (losses * counted).sum() / counted.sum().clamp(min=1)


class LossFunction(Protocol):
    """(scores (N, P), labels (N, P), groups (N,)) -> a scalar."""

    def __call__(  # noqa: D102 (the class says it)
        self, scores: Tensor, labels: Tensor, groups: Tensor, over_all: OverAll = ...
    ) -> Tensor: ...


FUNCTIONS: dict[Loss, LossFunction] = {Loss.MSE: mse, Loss.LAMBDARANK: lambdarank, Loss.PAIRWISE: pairwise}
"""The function of each `Loss`."""
