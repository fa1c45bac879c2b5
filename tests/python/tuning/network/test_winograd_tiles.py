"""Which convolutions are computed in Winograd's way: those that were faster so, tuned either way."""

from __future__ import annotations

import pytest

from tlp_tvm.tuning.network.winograd_tiles import cost_of, tile_for


@pytest.mark.parametrize(
    ("pixels", "entering", "given", "tile"),
    [
        (56, 64, 64, 4),
        (28, 64, 64, 4),
        (28, 48, 48, 4),
        (56, 32, 32, 4),
        (14, 512, 512, 4),
        (14, 256, 256, 4),
        (8, 512, 512, 2),
        (7, 512, 512, 2),
        (56, 24, 24, None),
        (56, 16, 32, None),
        (56, 32, 16, None),
        (112, 16, 16, None),
        (112, 8, 8, None),
        (2, 512, 512, None),
        (224, 3, 64, None),
    ],
)
def test_as_tunings_either_way_showed(pixels: int, entering: int, given: int, tile: int | None) -> None:
    assert tile_for(1, pixels, pixels, entering, given) == tile


def test_weights_count_once_for_all_images() -> None:
    one, eight = (cost_of(4, 4 * images, 512, 512) / images for images in (1, 8))
    assert eight < one / 2
    assert tile_for(8, 7, 7, 512, 512) == 4
