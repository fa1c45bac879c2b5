"""Convolutions of 3 x 3 taps in Winograd's way: transforms by hand, and products that a search is good at.

Between the transforms a convolution is (tile + 2)^2 products of a matrix of pixels and one of weights, which
lie as the program reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlp_tvm.lowered.loop_script import LoopScript
from tlp_tvm.lowered.winograd_matrices import TAPS, transformed
from tlp_tvm.lowered.winograd_transforms import Image, Tiles, enter, give
from tlp_tvm.metaschedule.graph.replaced_calls import (
    FLOAT,
    Emit,
    Written,
    has_floats,
    shapes_with_channels_last,
    with_calls_replaced,
)
from tlp_tvm.metaschedule.graph.winograd.tirx_script import function
from tlp_tvm.tuning.network.winograd_tiles import tile_for


def with_winograd(module: Any) -> Any:
    """Have convolutions computed so where that is faster on a CPU.

    Args:
        module: Relax module; its convolutions have channels last.
    """
    return with_calls_replaced(module, _by_winograd)


def _by_winograd(call: Any, bound: Sequence[Any], emit: Emit) -> Any:
    """Transforms and products; None of a call that stays as it is."""
    from tvm import relax

    shapes = shapes_with_channels_last(call, bound)
    if shapes is None or not has_floats(call):
        return None
    image, weights, result = shapes
    steps = [int(each) for each in (*call.attrs.strides, *call.attrs.dilation, call.attrs.groups)]
    tile = None
    if steps == [1] * 5 and weights[:2] == (TAPS, TAPS):
        tile = tile_for(*result[:3], *weights[2:])
    if tile is None:
        return None
    tiles = Tiles(tile, *result[:3])
    top, left, *_ = (int(each) for each in call.attrs.padding)
    height, width, channels = image[1:]
    how = Image(height, width, channels, top, left)

    def entering(script: LoopScript, read: Any, write: Any) -> None:
        enter(script, tiles, read, write, how, _place)

    def given(script: LoopScript, read: Any, write: Any) -> None:
        give(script, tiles, read, write, result[3], _place)

    sums, products = ((tiles.numbers, tiles.count, each) for each in (channels, result[3]))
    pixels = Written(function(image, sums, entering), (call.args[0],), sums, "winograd_entering")
    kernel = relax.const(transformed(bound[1].value.numpy(), tile), FLOAT)
    found = emit(relax.op.matmul(emit(pixels), kernel))
    return emit(Written(function(products, result, given), (found,), result, "winograd_given"))


def _place(number: int, tile: Any, channel: Any) -> tuple[Any, ...]:
    return number, tile, channel
