"""Winograd's convolutions as three operators: transforms by hand, and products between them for a search.

TVM has all of it in one task, so that a search chooses schedules for the transforms too, of which it knows
hundreds that differ; and the same convolution with a bias or a residual sum is another task.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tlp_tvm.ansor.graph.replacing import register_operator, with_calls_replaced
from tlp_tvm.ansor.graph.winograd.tir_script import computed
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.lowered.loop_script import LoopScript
from tlp_tvm.lowered.winograd_matrices import TAPS, transformed
from tlp_tvm.lowered.winograd_transforms import Image, Tiles, enter, give

ENTERING, GIVEN = "tlp_tvm.winograd_entering", "tlp_tvm.winograd_given"

_CONVOLUTION = "nn.contrib_conv2d_winograd_without_weight_transform"
_WEIGHTS = "nn.contrib_conv2d_winograd_weight_transform"

_KERNEL, _PADDING = (2, 2), (1, 0, 0, 1)
"""What the products say of themselves, as they are an operator of TVM's whose weights it can pack: it is one
of convolutions, which gives an image of the size that it is given. No convolution is padded so."""


def with_transforms_by_hand(module: Any) -> Any:
    """Take the transforms out of Winograd's convolutions.

    Args:
        module: Relay module, where these transform constant weights.

    Returns:
        The module, with types.
    """
    register()
    return with_calls_replaced(module, [_CONVOLUTION], _apart)


def _apart(call: Any, arguments: Sequence[Any]) -> Any:
    """The three operators; None where the weights are not known."""
    relay, attributes = load_tvm().relay, call.attrs
    kernel = _kernel(call.args[1])
    if kernel is None or str(attributes.data_layout) != "NHWC":
        return None
    from tvm.topi.nn.utils import get_pad_tuple

    tile = int(attributes.tile_size)
    top, left, _, _ = get_pad_tuple([int(each) for each in attributes.padding], (TAPS, TAPS))
    images, rows, columns, given = (int(extent) for extent in call.checked_type.shape)
    of_result = {"tile": tile, "images": images, "rows": rows, "columns": columns}
    side = tile + TAPS - 1
    weights = transformed(kernel.data.numpy(), tile)
    packable = weights.reshape(side, side, *weights.shape[1:]).transpose(0, 1, 3, 2)
    products = relay.nn.contrib_conv2d_winograd_without_weight_transform(
        _call(ENTERING, arguments[0], {**of_result, "top": top, "left": left}),
        relay.const(packable),
        tile_size=tile,
        padding=_PADDING,
        channels=given,
        kernel_size=_KERNEL,
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_dtype=attributes.out_dtype,
    )
    return _call(GIVEN, products, of_result)


def _kernel(weights: Any) -> Any:
    """The weights of a convolution, (rows, columns, channels, channels given), that are transformed."""
    relay = load_tvm().relay
    for name in (_WEIGHTS, "transpose"):
        if not isinstance(weights, relay.Call) or weights.op != relay.op.get(name):
            return None
        weights = weights.args[0]
    return weights if isinstance(weights, relay.Constant) else None


def are_products(pixels: Any, weights: Sequence[int], padding: Sequence[int]) -> bool:
    """Whether an operator is the products alone, and no convolution.

    Args:
        pixels: its first argument, of `te`.
        weights: shape of its second, as it comes.
        padding: its own, on all four sides.
    """
    extents = [int(extent) for extent in pixels.shape[:2]]
    return tuple(padding) == _PADDING and extents == list(weights[:2])


def extents_of(weights: Any, rewritten: str) -> list[int]:
    """The shape of transformed weights, as they come or packed.

    Args:
        weights: of `te`.
        rewritten: their layout; empty where they are as they come.
    """
    shape = weights.shape
    if rewritten:
        rewriting = load_tvm().auto_scheduler
        shape = rewriting.get_shape_from_rewritten_layout(rewritten, ["eps", "nu", "co", "ci"])
    return [int(extent) for extent in shape]


def products(pixels: Any, weights: Any, rewritten: str = "", name: str = "winograd_products") -> Any:
    """The products, of `te`.

    Args:
        pixels: (tile + 2, tile + 2, tiles, channels).
        weights: (tile + 2, tile + 2, channels given, channels), or as `rewritten` has it.
        rewritten: the layout of packed weights; empty where they are as they come.
        name: of the operation.
    """
    tvm = load_tvm()
    te, auto_scheduler = tvm.te, tvm.auto_scheduler
    _, _, given, entering = extents_of(weights, rewritten)
    if rewritten:
        auto_scheduler.remove_index_check(weights)
    ci = te.reduce_axis((0, entering), name="ci")
    found = te.compute(
        (*pixels.shape[:3], given),
        lambda eps, nu, p, co: te.sum(pixels[eps, nu, p, ci] * weights[eps, nu, co, ci], axis=ci),
        name=name,
        attrs={"layout_free_placeholders": [weights]},
    )
    return auto_scheduler.rewrite_compute_body(found, rewritten) if rewritten else found


@functools.cache
def register() -> None:
    """Tell TVM of the transforms, once a process."""
    _register(ENTERING, "Transform the tiles of an image.", _entering, _entering_shape)
    _register(GIVEN, "Bring products of tiles back to pixels.", _given, _given_shape)


def _entering_shape(image: Sequence[int], attributes: Any) -> list[int]:
    tiles = _tiles(attributes)
    side = tiles.tile + TAPS - 1
    return [side, side, tiles.count, image[3]]


def _entering(image: Any, attributes: Any) -> Any:
    """The first of the operators, of `te`."""
    tiles = _tiles(attributes)
    extents = [int(extent) for extent in image.shape]
    _, rows, columns, channels = extents
    how = Image(rows, columns, channels, int(attributes["top"]), int(attributes["left"]))

    def written(script: LoopScript, read: Any, write: Any) -> None:
        enter(script, tiles, read, write, how, _place(tiles))

    return computed("winograd_entering", image, _entering_shape(extents, attributes), written)


def _given_shape(sums: Sequence[int], attributes: Any) -> list[int]:
    tiles = _tiles(attributes)
    return [tiles.images, tiles.rows, tiles.columns, sums[3]]


def _given(sums: Any, attributes: Any) -> Any:
    """The last of the operators, of `te`."""
    tiles = _tiles(attributes)
    extents = [int(extent) for extent in sums.shape]

    def written(script: LoopScript, read: Any, write: Any) -> None:
        give(script, tiles, read, write, extents[3], _place(tiles))

    return computed("winograd_given", sums, _given_shape(extents, attributes), written)


def _tiles(attributes: Any) -> Tiles:
    return Tiles(*(int(attributes[name]) for name in ("tile", "images", "rows", "columns")))


def _place(tiles: Tiles) -> Callable[[int, Any, Any], tuple[Any, ...]]:
    return lambda number, tile, channel: (*divmod(number, tiles.tile + TAPS - 1), tile, channel)


def _call(name: str, argument: Any, attributes: dict[str, int]) -> Any:
    tvm = load_tvm()
    return tvm.relay.Call(tvm.relay.op.get(name), [argument], tvm.ir.make_node("DictAttrs", **attributes))


def _register(
    name: str,
    what: str,
    compute: Callable[[Any, Any], Any],
    shape: Callable[[Sequence[int], Any], list[int]],
) -> None:
    tvm = load_tvm()

    def kind(kinds: Sequence[Any], attributes: Any) -> Any:
        extents = [int(extent) for extent in kinds[0].shape]
        return tvm.relay.TensorType(shape(extents, attributes), kinds[0].dtype)

    register_operator(
        name,
        what,
        ("data",),
        kind,
        lambda inputs, attributes: compute(inputs[0], attributes),
        lambda outs: tvm.te.create_schedule([out.op for out in outs]),
    )
