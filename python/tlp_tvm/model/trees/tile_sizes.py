"""How a program tiles its main loops, read off its embedding: what store features do not say.

TVM's features of a lowered store have the bytes that loops touch, but not how many results the innermost
loops keep: 7 rows of 16 numbers are 14 vector registers of an AVX2 processor, which has 16 and needs some for
what is read; 4 rows are 8. The first multi-level tiling of a program ("SSRSRS") says it: consecutive splits,
of spatial axes into four factors, then of reduction axes into two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.embedding import Embedding
from tlp_tvm.layout import FeatureLayout

LEVELS, INNER = 4, 2
"""Factors of a spatial and of a reduction axis."""

SPATIAL, REDUCTION = 4, 3
"""Axes whose factors are kept, the innermost first."""

TILE_WIDTH = SPATIAL * LEVELS + REDUCTION * INNER + 17
"""Columns of a program: logarithms to the base 2, 0 for what is not there. Each axis's factors, from outside
to inside; products over all axes by level; rows of vectors that the innermost loops keep, and the next loops
around them; the innermost loops' turns without and with those around them; numbers that the two innermost
levels keep; twos in the vectorised factor; spatial and reduction axes; extents of all spatial axes, all
reduction axes and the vectorised one."""

_PART = 1024
"""Programs whose factors are in memory at a time."""


def tile_sizes(embeddings: Embedding, layout: FeatureLayout) -> NDArray[np.float32]:
    """Tile sizes of programs.

    Args:
        embeddings: (n, L, E).
        layout: of them; one with fields.

    Returns:
        (n, `TILE_WIDTH`); zeros for a program that has no such tiling, or whose layout shows none.
    """
    found = np.zeros((len(embeddings), TILE_WIDTH), np.float32)
    for begin in range(0, len(embeddings), _PART):
        part = embeddings[begin : begin + _PART]
        factors, numbers = _factors_of(part, layout)
        for i in range(len(part)):
            spatial, reduction = _first_tiling(numbers[i])
            if len(spatial):
                found[begin + i] = _columns(factors[i, spatial], factors[i, reduction, :INNER])
    return found


def _factors_of(embeddings: Embedding, layout: FeatureLayout) -> tuple[NDArray[Any], NDArray[Any]]:
    """(n, L, 4) logarithms of each split's factors, from outside to inside, and (n, L) how many it has."""
    fields = layout.to_dict().get("fields", {})
    kind, name = ("Split", "factors") if "Split" in layout.kinds else ("SP", "lengths")
    if name not in fields.get(kind, {}):
        return np.zeros((*embeddings.shape[:2], LEVELS)), np.zeros(embeddings.shape[:2], np.intp)
    splits = embeddings[:, :, layout.kinds.index(kind)] > 0
    logs, there = _logarithms(embeddings, fields[kind][name])
    if kind == "SP":  # a split of Ansor's has its extent and the inner factors
        extents, _ = _logarithms(embeddings, fields[kind]["extent"] | {"columns": 1})
        outer = np.maximum(extents - logs.sum(2, keepdims=True), 0)
        logs = np.concatenate([outer, logs], 2)
        there = np.concatenate([np.ones_like(there[:, :, :1]), there], 2)
    return logs[:, :, :LEVELS], np.where(splits, there.sum(2), 0)


def _logarithms(embeddings: Embedding, field: dict[str, Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """log2 of a field's numbers, which the encoder has as log2(1 + x), and where there are any."""
    begin = field["column"]
    encoded = embeddings[:, :, begin : begin + field["columns"]] / field["scale"]
    return np.log2(np.maximum(np.exp2(encoded) - 1, 1)), encoded > 0


def _first_tiling(numbers: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of the spatial and of the reduction splits of a program's first tiling; none where it has none.

    Args:
        numbers: (L,) factors of each split.
    """
    begin = int(np.argmax(numbers == LEVELS))
    middle = begin + _run(numbers[begin:] == LEVELS)
    return np.arange(begin, middle), np.arange(middle, middle + _run(numbers[middle:] == INNER))


def _run(given: NDArray[np.bool_]) -> int:
    """How many are true before one is not."""
    return len(given) if given.all() else int(np.argmin(given))


def _columns(spatial: NDArray[Any], reduction: NDArray[Any]) -> NDArray[Any]:
    """(`TILE_WIDTH`,) of (axes, 4) spatial and (axes, 2) reduction factors, the vectorised axis the last."""
    own = np.zeros((SPATIAL, LEVELS)), np.zeros((REDUCTION, INNER))
    for kept, given in zip(own, (spatial, reduction), strict=True):
        count = min(len(kept), len(given))
        kept[:count] = given[::-1][:count]
    outer, second, around, inside = spatial.sum(0)
    reduced, turns = reduction.sum(0)
    rows, rows_around = inside - spatial[-1, 3], around - spatial[-1, 2]
    vector = round(2 ** spatial[-1, 3])
    return np.array(
        [
            *own[0].ravel(),
            *own[1].ravel(),
            *(outer, second, around, inside, reduced, turns, rows, rows_around),
            *(rows + turns, rows + turns + around, inside + around, np.log2(vector & -vector)),
            *(len(spatial), len(reduction), spatial.sum(), reduction.sum(), spatial[-1].sum()),
        ]
    )
