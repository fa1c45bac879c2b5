"""A convolution in groups, as RegNet and ResNeXt have them, with an axis of its own for the groups.

TVM finds the group of a channel by a division, inside the innermost loops: there a vector of channels reads
numbers from here and there, and many programs are ten times as slow as the fastest, or more. With the groups
as an axis an image is the same numbers, in another shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlp_tvm.metaschedule.graph.replaced_calls import (
    Computed,
    Emit,
    has_floats,
    kind_of,
    shapes_with_channels_last,
    with_calls_replaced,
)


def with_groups_apart(module: Any) -> Any:
    """Give the groups of convolutions an axis, but where each is of one channel.

    Args:
        module: Relax module; its convolutions have channels last.
    """
    return with_calls_replaced(module, _apart)


def _apart(call: Any, bound: Sequence[Any], emit: Emit) -> Any:
    """A convolution of groups; None of another call."""
    from tvm import relax

    shapes = shapes_with_channels_last(call, bound)
    if shapes is None:
        return None
    given, weights, result = shapes
    groups = int(call.attrs.groups)
    if groups == 1 or weights[2] == 1 or not has_floats(call):
        return None
    image = emit(relax.op.reshape(call.args[0], (*given[:3], groups, weights[2])))
    kernel = relax.const(
        bound[1].value.numpy().reshape(*weights[:3], groups, weights[3] // groups), kind_of(call.args[1])
    )
    how = {
        name: [int(each) for each in getattr(call.attrs, name)] for name in ("strides", "padding", "dilation")
    }
    return relax.op.reshape(emit(Computed(_convolution, (image, kernel), how, "conv2d_groups")), result)


def _convolution(
    image: Any, kernel: Any, strides: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> Any:
    """(n, h, w, groups, channels) of an image of that shape and weights (h, w, channels, groups, outputs)."""
    from tvm import te, topi

    top, left, bottom, right = padding
    padded = image
    if any(padding):
        padded = topi.nn.pad(image, [0, top, left, 0, 0], [0, bottom, right, 0, 0], name="pad_temp")
    rows, columns, channels, groups, outputs = (int(extent) for extent in kernel.shape)
    over = [te.reduce_axis((0, extent), name) for extent, name in ((rows, "ry"), (columns, "rx"))]
    of_group = te.reduce_axis((0, channels), "rc")
    sizes = [
        (int(padded.shape[axis + 1]) - dilation[axis] * (extent - 1) - 1) // strides[axis] + 1
        for axis, extent in enumerate((rows, columns))
    ]

    def number(n: Any, y: Any, x: Any, group: Any, output: Any) -> Any:
        at = (y * strides[0] + over[0] * dilation[0], x * strides[1] + over[1] * dilation[1])
        product = padded[n, at[0], at[1], group, of_group] * kernel[over[0], over[1], of_group, group, output]
        return te.sum(product, axis=[*over, of_group])

    return te.compute((image.shape[0], *sizes, groups, outputs), number, name="conv2d_groups")
