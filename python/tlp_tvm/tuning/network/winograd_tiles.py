"""Whether a convolution of 3 x 3 taps is faster in Winograd's way, and in tiles of how many pixels.

A tile of m x m pixels takes (m + 2)^2 products of channels, not 9 m^2: for 4 a quarter of them, for 2 less
than half. But the transformed weights are four times as many, or not twice as many, and come from memory; and
pixels are transformed before and after, which takes the longer the fewer channels there are to multiply.
"""

from __future__ import annotations

TILES = (4, 2)
"""That TVM has matrices for whose results are exact to a millionth or so."""

WEIGHT = 8.0
"""What it takes to fetch a weight from memory, in products, as both cores of a Zen 3 with AVX2 do them."""

ENTERING, GIVEN = 1400.0, 1000.0
"""What it takes to transform a channel of a tile of four pixels before and after, in products: so that nine
convolutions of 8 to 64 channels on 28 to 112 pixels, tuned either way there, come out about right."""

GAIN = 0.9
"""Of the time of the usual way that Winograd's may take: it takes twice as long to compile."""


def tile_for(images: int, rows: int, columns: int, entering: int, given: int) -> int | None:
    """The tile that is expected to be fastest.

    Args:
        images: at a time.
        rows: of what is given.
        columns: of what is given.
        entering: channels.
        given: channels.

    Returns:
        Rows and columns of pixels in a tile; None for a convolution as usual.
    """
    usual = 9 * (images * rows * columns + WEIGHT)
    costs = {
        tile: cost_of(tile, images * -(-rows // tile) * -(-columns // tile), entering, given)
        for tile in TILES
    }
    best = min(costs, key=lambda tile: costs[tile])
    return best if costs[best] < GAIN * usual else None


def cost_of(tile: int, count: int, entering: int, given: int) -> float:
    """What tiles take, in products of one number of each channel.

    Args:
        tile: rows and columns of pixels in each.
        count: of tiles.
        entering: channels.
        given: channels.
    """
    numbers = (tile + 2) ** 2
    transforms = (ENTERING / given + GIVEN / entering) / (max(TILES) + 2) ** 2
    return numbers * (count * (1 + transforms) + WEIGHT)
