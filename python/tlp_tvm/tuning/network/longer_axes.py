"""Axes that no tile divides, and what becomes of them; the graphs of both frameworks ask here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]

FEWEST = 32
"""Rows from which on it pays to have more."""

DEAREST = 1.1
"""How much longer an axis may become."""

COPIES = 1 / 3
"""Tensors padded or cut for each product, at most: a network that needs more stays as it is."""


@dataclass(frozen=True)
class Padded:
    """An expression in its long form.

    Attributes:
        expression: of Relay or Relax.
        axes: that are longer than they were.
        zero: those of them at whose end there are zeros; at the end of others is any finite number.
    """

    expression: Any
    axes: frozenset[int]
    zero: frozenset[int] = frozenset()


def padded_extent(rows: int) -> int:
    """What a number of rows becomes; 0 where it stays."""
    if rows < FEWEST or any(rows % tile == 0 for tile in range(4, 17)):
        return 0
    longer = (-(-rows // tile) * tile for tile in (16, 8, 4))
    return next((extent for extent in longer if extent <= rows * DEAREST), 0)


def most_copies(products: int) -> float:
    """How many tensors may be padded or cut when a network runs.

    Args:
        products: of matrices that have more rows.
    """
    return max(2, products * COPIES)


def long_shape(shape: Shape, axes: frozenset[int], after: int) -> Shape:
    """A shape with these axes of another extent."""
    return tuple(after if axis in axes else extent for axis, extent in enumerate(shape))


def same_axes(axes: frozenset[int], before: Shape, after: Shape) -> frozenset[int] | None:
    """Where axes are after a reshape; None where one is not kept as it is.

    Args:
        axes: of the shape before.
        before: the shape that is reshaped.
        after: what it becomes.
    """
    found = set()
    for axis in axes:
        lead = math.prod(before[:axis])
        places = [
            place
            for place, extent in enumerate(after)
            if extent == before[axis] and math.prod(after[:place]) == lead
        ]
        if len(places) != 1:
            return None
        found.add(places[0])
    return frozenset(found)
