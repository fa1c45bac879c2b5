"""Convolutions and poolings with channels last, also in the place of transposed ones; no gates in weights.

Files have channels first, and Ansor vectorises the last axis. A convolution in groups of several channels, as
ResNeXt and RegNet have them, finds the group of a channel by a division; where tiles and groups divide each
other the division is outside the innermost loops, and a few programs measured find such tiles. A transposed
convolution multiplies by the zeros that it puts between what it reads; a convolution with a channel for each
of its phases does not.

TVM moves any factor of a channel into the weights of the convolution after it. A batch norm's is gone then; a
gate of squeeze and excitation, which is computed anew each time, makes weights that are multiplied and packed
anew each time: 221,184 numbers instead of 56,448 in a late layer of EfficientNet-B0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tlp_tvm.ansor.graph.constants import folding_pass
from tlp_tvm.ansor.graph.replacing import with_calls_replaced
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.network.phases import PhasedAxis, phased_axes, phased_weights, zeros_around
from tlp_tvm.tuning.network.winograd_tiles import tile_for

_IMAGES = {
    "nn.conv2d": ["NHWC", "default"],
    **{
        f"nn.{pool}": ["NHWC"]
        for pool in ("max_pool2d", "avg_pool2d", "global_avg_pool2d", "adaptive_avg_pool2d")
    },
}
_TRANSPOSED = "nn.conv2d_transpose"
_VOLUMES = {"nn.conv3d": ["NDHWC", "default"]}
"""Operators whose layout TVM converts, and to what; operators beside them follow."""


def channels_last(module: Any) -> Any:
    """Convert a network whose convolutions of images are dense or depthwise.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    found = _calls(module, "nn.conv2d")
    return _converted(module, _IMAGES) if found and not any(_in_groups(each) for each in found) else module


def channels_last_in_groups(module: Any) -> Any:
    """Convert a network with a convolution of images whose groups have several channels each.

    Args:
        module: Relay module.

    Returns:
        The module, with types; as it was where TVM is too old for such convolutions.
    """
    known = hasattr(load_tvm().topi.nn, "group_conv2d_nhwc")
    if known and any(_in_groups(each) for each in _calls(module, "nn.conv2d")):
        return _converted(module, _IMAGES)
    return module


def channels_last_in_volumes(module: Any) -> Any:
    """Convert a network of dense convolutions of volumes, as of videos.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    found = _calls(module, "nn.conv3d")
    dense = all(int(each.attrs.groups) == 1 for each in found)
    return _converted(module, _VOLUMES) if found and dense else module


def without_transposed_convolutions(module: Any) -> Any:
    """Have convolutions compute what transposed ones do, with channels last, where that can be for all.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    found = _calls(module, _TRANSPOSED)
    if not found or not all(_phased(each) for each in found):
        return module
    after = _converted(module, {**_IMAGES, _TRANSPOSED: ["NHWC", "default"]})
    return with_calls_replaced(after, [_TRANSPOSED], _in_phases)


def _in_phases(call: Any, arguments: Sequence[Any]) -> Any:
    """A transposed convolution with channels last as a convolution, whose phases are put side by side."""
    relay = load_tvm().relay
    axes = _phased(call)
    if axes is None:
        return None
    attributes = call.attrs
    weights = phased_weights(arguments[1].data.numpy(), axes, [int(each) for each in attributes.padding[:2]])
    found = relay.nn.conv2d(
        arguments[0],
        relay.const(weights),
        padding=zeros_around(axes),
        channels=weights.shape[3],
        kernel_size=weights.shape[:2],
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_dtype=attributes.out_dtype,
    )
    images, rows, columns, given = (int(extent) for extent in call.checked_type.shape)
    counts, strides = [axis.count for axis in axes], [axis.stride for axis in axes]
    whole = [count * stride for count, stride in zip(counts, strides, strict=True)]
    if strides != [1, 1]:
        apart = relay.reshape(found, (images, *counts, *strides, given))
        beside = relay.transpose(apart, (0, 1, 3, 2, 4, 5))
        found = relay.reshape(beside, (images, *whole, given))
    cuts = [axis.cut for axis in axes]
    if whole != [rows, columns]:
        ends = [images, cuts[0] + rows, cuts[1] + columns, given]
        found = relay.strided_slice(found, [0, *cuts, 0], ends)
    return found


def _phased(call: Any) -> list[PhasedAxis] | None:
    """How the axes of a transposed convolution are computed by a convolution; None where they cannot be."""
    attributes, relay = call.attrs, load_tvm().relay
    layouts = str(attributes.data_layout), str(attributes.kernel_layout)
    if layouts not in (("NCHW", "IOHW"), ("NHWC", "HWIO")) or int(attributes.groups) != 1:
        return None
    dilated = any(int(each) != 1 for each in attributes.dilation)
    if dilated or not isinstance(call.args[1], relay.Constant):
        return None
    read, kernel, given = (
        [int(extent) for extent in _extents(each.checked_type.shape, layout)]
        for each, layout in zip((call.args[0], call.args[1], call), (*layouts, layouts[0]), strict=True)
    )
    return phased_axes(read, given, kernel, attributes.strides, attributes.padding)


def _extents(shape: Sequence[Any], layout: str) -> list[Any]:
    return [shape[layout.index(axis)] for axis in "HW"]


def _converted(module: Any, layouts: dict[str, list[str]]) -> Any:
    tvm = load_tvm()
    relay = tvm.relay
    passes = [
        relay.transform.InferType(),
        relay.transform.ConvertLayout(layouts),
        folding_pass(),
    ]
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential(passes)(module)


def with_gates_kept(module: Any) -> Any:
    """Keep factors that are computed anew each time out of weights that are larger than the activations.

    Args:
        module: Relay module.

    Returns:
        The module, with types. An identity that no factor passes stays in it, as a build folds factors once
        more; TVM takes it out when it fuses operators.
    """
    return with_calls_replaced(module, ["nn.conv2d"], _fenced)


def _fenced(call: Any, arguments: Sequence[Any]) -> Any:
    """A convolution whose input keeps its factor."""
    relay = load_tvm().relay
    scaled = call.args[0]
    if not isinstance(scaled, relay.Call) or scaled.op != relay.op.get("multiply"):
        return None
    computed = any(
        not isinstance(factor, relay.Constant) and _numbers(factor) < _numbers(scaled)
        for factor in scaled.args
    )
    if not computed or _numbers(call.args[1]) <= _numbers(scaled):
        return None
    return relay.Call(call.op, [relay.annotation.stop_fusion(arguments[0]), arguments[1]], call.attrs)


def with_winograd(module: Any) -> Any:
    """Have convolutions of 3 x 3 taps computed in Winograd's way where that is faster.

    TVM does so by itself for those of 65 to 511 channels, in tiles of four pixels, as was best for ResNets on
    a processor with AVX-512.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    return with_calls_replaced(module, ["nn.conv2d"], _by_winograd)


def _by_winograd(call: Any, arguments: Sequence[Any]) -> Any:
    """A convolution that reads transformed weights; None where it stays as it is."""
    relay, attributes = load_tvm().relay, call.attrs
    layouts = str(attributes.data_layout), str(attributes.kernel_layout)
    fixed = isinstance(call.args[1], relay.Constant) and str(call.checked_type.dtype) == "float32"
    if layouts != ("NHWC", "HWIO") or not fixed or int(attributes.groups) != 1:
        return None
    images, rows, columns, given = (int(extent) for extent in call.checked_type.shape)
    *taps, entering, _ = (int(extent) for extent in call.args[1].checked_type.shape)
    steps = [int(each) for each in (*attributes.strides, *attributes.dilation)]
    tile = tile_for(images, rows, columns, entering, given) if taps == [3, 3] and steps == [1] * 4 else None
    if tile is None:
        return None
    weights = relay.nn.contrib_conv2d_winograd_weight_transform(
        relay.transpose(arguments[1], (3, 2, 0, 1)), tile_size=tile
    )
    return relay.nn.contrib_conv2d_winograd_without_weight_transform(
        arguments[0],
        weights,
        tile_size=tile,
        padding=attributes.padding,
        channels=given,
        kernel_size=(3, 3),
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_dtype=attributes.out_dtype,
    )


def _numbers(expression: Any) -> int:
    return math.prod(int(extent) for extent in expression.checked_type.shape)


def _calls(module: Any, operator: str) -> list[Any]:
    relay = load_tvm().relay
    found = []

    def visit(expression: Any) -> None:
        if isinstance(expression, relay.Call) and expression.op == relay.op.get(operator):
            found.append(expression)

    relay.analysis.post_order_visit(relay.transform.InferType()(module)["main"], visit)
    return found


def _in_groups(call: Any) -> bool:
    """Whether a convolution is neither dense nor depthwise."""
    groups = int(call.attrs.groups)
    channels = int(call.checked_type.shape[str(call.attrs.data_layout).index("C")])
    data = call.args[0].checked_type.shape
    entering = int(data[str(call.attrs.data_layout).index("C")])
    return groups != 1 and not groups == channels == entering
