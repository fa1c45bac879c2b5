"""Programs bred over generations, for those who replay them."""

from __future__ import annotations

import numpy as np

from tlp_tvm import _core
from tlp_tvm.breeding.breeder import Breeder

GENERATIONS = 5


def bred(stock: Breeder, count: int) -> _core.Herd:
    """So many different programs, or all that there are."""
    known = herd = stock.sample
    for seed in range(GENERATIONS):
        children, _ = stock.stock.breed(
            herd,
            np.ones(len(herd)),
            stock.plan,
            count=2 * count // GENERATIONS + 1,
            seed=seed,
            known=known.hashes,
            gpu=None,
            threads=0,
        )
        if len(children):
            herd, known = children, stock.stock.joined([known, children])
    bred = known.take(np.arange(len(stock.sample), len(known)))
    return bred.take(np.sort(np.random.default_rng(1).permutation(len(bred))[:count]))
