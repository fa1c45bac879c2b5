"""Transposed convolutions as convolutions, which do not multiply by zeros.

TVM puts the zeros of a transposed convolution between the numbers of its input, and computes it with channels
first alone: where its conversion of layouts leaves one with channels last, nothing compiles it. A convolution
with a channel for each phase computes the same with a share of the products; its phases are put side by side
while they are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from tlp_tvm.metaschedule.graph.replaced_calls import (
    FLOAT,
    Emit,
    has_floats,
    is_call,
    shape_of,
    with_calls_replaced,
)
from tlp_tvm.tuning.network.phases import PhasedAxis, phased_axes, phased_weights, zeros_around

_LAST, _FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
"""The orders of axes that bring the channels there."""


def without_transposed_convolutions(module: Any) -> Any:
    """Replace those whose weights are constant, and which a convolution can compute.

    Args:
        module: Relax module; convolutions have channels last, and others where TVM has brought them.

    Returns:
        The same; transposed convolutions that are left have channels first.
    """
    return with_calls_replaced(module, _replaced)


def _replaced(call: Any, bound: Sequence[Any], emit: Emit) -> Any:
    """What stands for a transposed convolution; None of another call, and of one that can stay."""
    from tvm import relax

    if not is_call(call, "relax.nn.conv2d_transpose"):
        return None
    axes, has_last = _phased(call, bound), str(call.attrs.data_layout) == "NHWC"
    given = call.args[0]
    if axes is not None:
        images = given if has_last else emit(relax.op.permute_dims(given, _LAST))
        found = _in_phases(call, images, bound[1].value.numpy(), axes, emit)
        return found if has_last else relax.op.permute_dims(emit(found), _FIRST)
    if not has_last:
        return None
    attributes = call.attrs
    kept = ("strides", "padding", "output_padding", "dilation", "groups", "kernel_layout", "out_dtype")
    how = {name: getattr(attributes, name) for name in kept}
    first = emit(relax.op.permute_dims(given, _FIRST))
    found = emit(relax.op.nn.conv2d_transpose(first, call.args[1], data_layout="NCHW", **how))
    return relax.op.permute_dims(found, _LAST)


def _in_phases(call: Any, images: Any, weights: NDArray[Any], axes: Sequence[PhasedAxis], emit: Emit) -> Any:
    """A convolution, and the copy that puts its phases side by side, with channels last."""
    from tvm import relax

    paddings = [int(each) for each in call.attrs.padding[:2]]
    found = emit(
        relax.op.nn.conv2d(
            images,
            relax.const(phased_weights(weights.transpose(2, 3, 0, 1), axes, paddings), FLOAT),
            padding=zeros_around(axes),
            data_layout="NHWC",
            kernel_layout="HWIO",
        )
    )
    count, *sizes = _extents(call, str(call.attrs.data_layout), "NHW") or [0]
    counts, strides = [axis.count for axis in axes], [axis.stride for axis in axes]
    whole = [places * stride for places, stride in zip(counts, strides, strict=True)]
    if strides != [1, 1]:
        apart = emit(relax.op.reshape(found, (count, *counts, *strides, weights.shape[1])))
        beside = emit(relax.op.permute_dims(apart, [0, 1, 3, 2, 4, 5]))
        found = emit(relax.op.reshape(beside, (count, *whole, weights.shape[1])))
    if whole == sizes:
        return found
    cuts = [axis.cut for axis in axes]
    ends = [cut + size for cut, size in zip(cuts, sizes, strict=True)]
    return emit(relax.op.strided_slice(found, axes=[1, 2], begin=cuts, end=ends))


def _phased(call: Any, bound: Sequence[Any]) -> list[PhasedAxis] | None:
    """How the axes of a transposed convolution are computed by a convolution; None where they cannot be."""
    from tvm.ir import GenericConst

    attributes = call.attrs
    layout, of_weights = str(attributes.data_layout), str(attributes.kernel_layout)
    plain = int(attributes.groups) == 1 and all(int(each) == 1 for each in attributes.dilation)
    if not isinstance(bound[1], GenericConst) or of_weights != "IOHW" or not plain or not has_floats(call):
        return None
    read, given = _extents(call.args[0], layout, "HW"), _extents(call, layout, "NHW")
    kernel = _extents(call.args[1], of_weights, "HW")
    if read is None or kernel is None or given is None:
        return None
    return phased_axes(read, given[1:], kernel, attributes.strides, attributes.padding)


def _extents(expression: Any, layout: str, axes: str) -> list[int] | None:
    """Some extents of a tensor; None where one of it is open."""
    shape = shape_of(expression)
    return None if shape is None else [shape[layout.index(axis)] for axis in axes]
