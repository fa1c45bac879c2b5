"""What turns convolutions into products and back computes convolutions."""

from __future__ import annotations

import numpy as np
import pytest

from tlp_tvm.lowered.winograd_matrices import matrices, transformed
from tlp_tvm.tuning.network.winograd_tiles import TILES


@pytest.mark.parametrize("tile", TILES)
def test_products_between_the_transforms_are_a_convolution(tile: int) -> None:
    random = np.random.default_rng(0)
    pixels, weights = random.standard_normal((tile + 2, tile + 2)), random.standard_normal((3, 3))
    of = matrices(tile)

    sums = (of.weights @ weights @ of.weights.T) * (of.entering @ pixels @ of.entering.T)

    windows = np.lib.stride_tricks.sliding_window_view(pixels, (3, 3))
    np.testing.assert_allclose(of.given @ sums @ of.given.T, np.einsum("yxij,ij->yx", windows, weights))


@pytest.mark.parametrize("tile", TILES)
def test_weights_are_transformed_a_kernel_at_a_time(tile: int) -> None:
    weights = np.random.default_rng(0).standard_normal((3, 3, 2, 5)).astype(np.float32)
    of_taps = matrices(tile).weights

    found = transformed(weights, tile)

    assert found.shape == ((tile + 2) ** 2, 2, 5)
    assert found.dtype == np.float32
    expected = of_taps @ weights[:, :, 1, 3] @ of_taps.T
    np.testing.assert_allclose(found[:, 1, 3], expected.ravel(), rtol=1e-5, atol=1e-6)
