"""Which programs to label, and how many. Smaller choices are part of larger ones: a choice is an order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tlp_tvm.embedding import Embedding
from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.rankers import Programs
from tlp_tvm.metrics.correlation import ranks
from tlp_tvm.model.scoring import BATCH
from tlp_tvm.model.tlp import TLP, Member

ALL = "all"


@dataclass(frozen=True)
class LabelCount:
    """A number of labels as it was asked for."""

    asked: str
    """ "430", "7%" or "all"."""

    def of(self, there: int) -> int:
        """How many of those that are there; never more."""
        if self.asked == ALL:
            return there
        if self.asked.endswith("%"):
            return round(there * float(self.asked[:-1]) / 100)
        return min(int(self.asked), there)


def label_counts(text: str) -> list[LabelCount]:
    """Read "0,50,7%,all".

    Raises:
        DatasetError: a part is no number, share or "all".
    """
    counts = []
    for part in (part.strip().lower() for part in text.split(",")):
        number = part.removesuffix("%")
        share = part.endswith("%") and number.replace(".", "", 1).isdigit() and float(number) <= 100
        if not (share or (number.isdigit() and not part.endswith("%")) or part == ALL):
            raise DatasetError(
                f'`labels`: expected numbers, shares or "{ALL}" such as 0,50,7%,all, found "{part}"'
            )
        counts.append(LabelCount(part))
    return counts


def label_count(text: str) -> LabelCount:
    """Read one number or share: "400", "7%".

    Raises:
        DatasetError: it is none, or several.
    """
    counts = label_counts(text)
    if len(counts) != 1:
        raise DatasetError(f'`labels`: expected one number or share such as 400 or 7%, found "{text}"')
    return counts[0]


BLOCK = 4
"""Programs of a task that are chosen together: a label compares programs of one task, so a single one is no
use. Larger blocks leave more tasks without labels: with `python benchmarks/few_labels.py k80`, `mtl` reaches
0.882 with blocks of 4 and 0.865 with blocks of 8."""


class Choose(str, Enum):
    """How the programs to label are chosen."""

    RANDOM = "random"
    """Any programs."""
    GROUPED = "grouped"
    """Random tasks, and a block of random programs of each."""
    DIVERSE = "diverse"
    """Blocks of tasks, then of programs, that differ to a model and whose scores are uncertain."""


def label_order(
    choose: Choose,
    task_of: NDArray[np.integer[Any]],
    features: Callable[[Programs], Embedding],
    seed: int,
    source: Callable[[], TLP],
    block: int = BLOCK,
) -> Programs:
    """The order in which programs are labelled.

    Args:
        choose: by which rule.
        task_of: (n,) the task of each program.
        features: gives the embeddings of some of the n, in the layout of the model.
        seed: of every random choice.
        source: gives a model trained on other platforms, for the rules that need one.
        block: programs of a task that are chosen together; `Choose.RANDOM` has no blocks.

    Returns:
        (n,) the programs' places.
    """
    rng = np.random.default_rng((seed, 7))
    if choose is Choose.RANDOM:
        return rng.permutation(len(task_of))
    tasks = np.unique(task_of)
    if choose is Choose.GROUPED:
        queues = [rng.permutation(np.flatnonzero(task_of == task)) for task in tasks]
        return _in_blocks(queues, rng.permutation(len(tasks)), block)
    embeddings, scores, doubts = _seen_by(source(), features, task_of)
    queues = [_spread_out(np.flatnonzero(task_of == task), embeddings, scores, doubts) for task in tasks]
    means = np.stack([embeddings[queue].mean(0) for queue in queues])
    task_doubts = np.array([doubts[queue].mean() for queue in queues])
    first = int(rng.integers(len(tasks)))
    return _in_blocks(queues, _farthest_first(means, task_doubts, first), block)


def _in_blocks(queues: list[Programs], tasks: NDArray[np.int64], block: int) -> Programs:
    """A block of each task in turn, then the next block of each."""
    longest = max(map(len, queues), default=0)
    blocks = [queues[task][i : i + block] for i in range(0, longest, block) for task in tasks]
    return np.concatenate([np.empty(0, np.int64), *blocks])


def _spread_out(
    rows: NDArray[np.int64],
    embeddings: NDArray[np.float64],
    scores: NDArray[np.float64],
    doubts: NDArray[np.float64],
) -> NDArray[np.int64]:
    """A task's programs: the one that scores best, as what all others are compared with, then far ones."""
    return rows[_farthest_first(embeddings[rows], doubts[rows], int(scores[rows].argmax()))]


def _farthest_first(
    points: NDArray[np.float64], doubts: NDArray[np.float64], first: int
) -> NDArray[np.int64]:
    """Greedy k-centre, in which a doubtful point counts as up to three times as far as a sure one."""
    n = len(points)
    worth = 0.5 + (ranks(doubts) / max(n - 1, 1))
    order = [first]
    distance = np.linalg.norm(points - points[first], axis=1)
    distance[first] = -np.inf
    while len(order) < n:
        nearest = np.where(np.isneginf(distance), -np.inf, (distance + 1e-9) * worth)
        chosen = int(nearest.argmax())
        order.append(chosen)
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen], axis=1))
        distance[chosen] = -np.inf
    return np.array(order, np.int64)


def _seen_by(
    network: TLP, features: Callable[[Programs], Embedding], task_of: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(n, H) embeddings on one scale, (n,) mean scores, (n,) how far members and heads disagree."""
    pooled, found = [], []
    device = next(network.parameters()).device
    member = network.members[0]
    assert isinstance(member, Member)
    with torch.inference_mode():
        for begin in range(0, len(task_of), BATCH):
            places = np.arange(begin, min(begin + BATCH, len(task_of)))
            x, real = network.inputs(torch.from_numpy(features(places)).to(device))
            h = member.trunk(x, real) * real.unsqueeze(-1)  # (n, L, H)
            pooled.append((h.sum(1) / real.sum(1).clamp(min=1).unsqueeze(-1)).cpu().numpy())
            each = torch.stack([m(x, real) for m in network.members], dim=1)  # (n, members, P)
            found.append(each.flatten(1).cpu().numpy())
    embeddings, scores = np.concatenate(pooled).astype(np.float64), np.concatenate(found).astype(np.float64)
    embeddings = (embeddings - embeddings.mean(0)) / (embeddings.std(0) + 1e-6)
    places = np.empty_like(scores)
    for task in np.unique(task_of):
        rows = np.flatnonzero(task_of == task)
        for column in range(scores.shape[1]):
            places[rows, column] = ranks(scores[rows, column]) / max(len(rows) - 1, 1)
    return embeddings, scores.mean(1), places.std(1)
