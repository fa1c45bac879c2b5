"""Generations of one round: breed, encode and score by the thousand, and keep the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.breeding.breeder import Breeder
from tlp_tvm.breeding.herd_scores import HerdScores

GENERATIONS = 4
"""As in TVM's search; `rounds` breed fewer."""

PARENTS = 0.5
"""Of a generation's size: the best programs so far, of which the next are bred."""

LEAST_PARENTS = 256

SHARE_OF_FORM = 0.125
"""Of the programs that breed or are found, at most, have one form, if there are enough others: what the model
likes best may be one idea only, and measurements shall tell."""


@dataclass(frozen=True)
class Found:
    """Programs and their scores, the best first."""

    herd: _core.Herd
    scores: NDArray[np.float32]
    scored: int
    """Programs that were scored on the way."""


def evolve(
    breeder: Breeder,
    start: _core.Herd,
    scores: HerdScores,
    *,
    population: int,
    count: int,
    seed: int,
    generations: int = GENERATIONS,
    known: NDArray[np.uint64] | None = None,
) -> Found:
    """Breed programs of a task.

    Args:
        breeder: of the task.
        start: programs to begin with, each once.
        scores: higher is better; minus infinity for programs that cannot run.
        population: children of a generation.
        count: programs wanted.
        seed: any number.
        generations: how many.
        known: hashes of programs that may breed and are not wanted.

    Returns:
        The best programs; fewer than `count` where there are no more.
    """
    known = np.empty(0, np.uint64) if known is None else known
    herd, values = start, scores(start)
    seen = np.concatenate([start.hashes, known])
    scored = len(start)
    parents = max(LEAST_PARENTS, int(PARENTS * population))
    for generation in range(generations):
        breeding = _best(values, herd.forms, parents)
        children, _ = breeder.stock.breed(
            herd.take(breeding),
            _chances(values[breeding]),
            breeder.plan,
            count=population,
            seed=seed * 1009 + generation,
            known=seen,
            gpu=breeder.gpu,
            threads=0,
        )
        if not len(children):
            break
        worth = scores(children)
        scored += len(children)
        seen = np.concatenate([seen, children.hashes])
        herd, values = breeder.stock.joined([herd, children]), np.concatenate([values, worth])
    wanted = np.flatnonzero(np.isfinite(values) & ~np.isin(herd.hashes, known))
    best = wanted[_best(values[wanted], herd.forms[wanted], count)]
    return Found(herd.take(best), values[best], scored)


def _best(values: NDArray[np.float32], forms: NDArray[np.int64], count: int) -> NDArray[np.intp]:
    """Places of the largest values, the largest first, no more than a share of them of one form.

    Those that are not finite stay away. Where the share leaves too few, more of a form are taken.
    """
    order = np.argsort(-values, kind="stable")
    order = order[np.isfinite(values[order])]
    by_form = np.argsort(forms[order], kind="stable")
    _, begins, sizes = np.unique(forms[order][by_form], return_index=True, return_counts=True)
    rank = np.empty(len(order), np.intp)
    rank[by_form] = np.arange(len(order)) - np.repeat(begins, sizes)
    crowded = rank >= max(1, int(SHARE_OF_FORM * count))
    chosen = np.argsort(crowded, kind="stable")[:count]
    return order[np.sort(chosen)]


def _chances(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Of each parent, which are not alike: a difference of scores is the logarithm of odds."""
    if not len(values):
        return np.empty(0)
    return np.exp(values.astype(np.float64) - float(values.max()))
