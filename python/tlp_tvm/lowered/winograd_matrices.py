"""What turns convolutions of 3 x 3 taps into products and back (Lavin and Gray, arXiv:1509.09308)."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TAPS = 3
"""Rows and columns of the kernels."""

_POINTS = (0, 1, -1, 2, -2)
"""Where polynomials are evaluated, beside at infinity: a tile of m pixels needs the first m + 1 of them."""


class Matrices(NamedTuple):
    """For tiles of m x m pixels, which are computed from m + 2 rows and columns.

    Attributes:
        entering: (m + 2, m + 2), of pixels.
        weights: (m + 2, 3), of taps.
        given: (m, m + 2), of products.
    """

    entering: NDArray[np.float64]
    weights: NDArray[np.float64]
    given: NDArray[np.float64]


@functools.cache
def matrices(tile: int) -> Matrices:
    """The matrices, for one axis; both axes have the same.

    Args:
        tile: rows and columns of pixels in each.
    """
    points = _POINTS[: tile + 1]
    scales = [math.prod(point - other for other in points if other != point) for point in points]
    weights = [
        [point**power / scale for power in range(TAPS)] for point, scale in zip(points, scales, strict=True)
    ]
    given = [[float(point**power) for point in points] + [float(power == tile - 1)] for power in range(tile)]
    taps, pixels = np.array([*weights, [0.0] * (TAPS - 1) + [1.0]]), np.array(given)
    # pixel i is the sum over taps k of pixel i + k that enters, times the tap
    products = np.einsum("ie,ek->ike", pixels, taps).reshape(tile * TAPS, -1)
    entering = np.array(
        [i + k == j for i in range(tile) for k in range(TAPS) for j in range(tile + TAPS - 1)]
    )
    found = np.linalg.lstsq(products, entering.reshape(tile * TAPS, -1).astype(float), rcond=None)[0]
    return Matrices(np.asarray(np.round(found)), taps, pixels)  # they are whole numbers


def transformed(weights: NDArray[np.float32], tile: int) -> NDArray[np.float32]:
    """The weights of a convolution as its products have them.

    Args:
        weights: (3, 3, channels, channels given).
        tile: rows and columns of pixels in each.

    Returns:
        ((tile + 2)^2, channels, channels given).
    """
    of_taps = matrices(tile).weights
    found = np.kron(of_taps, of_taps) @ weights.reshape(TAPS**2, -1).astype(np.float64)
    return np.asarray(found.reshape(-1, *weights.shape[2:]), np.float32)
