"""Images that stay in one order of axes: what is done number by number does not need another one.

TVM's conversion of layouts knows some operators; around others, as the clip of MobileNetV2 and the residual
sums of ConvNeXt, it brings the channels first, and back behind them: copies of whole images, and an
activation that no longer belongs to the convolution before it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from tlp_tvm.metaschedule.graph.replaced_calls import (
    CONVOLUTION,
    Emit,
    convolution_like,
    is_call,
    kind_of,
    shape_of,
    with_calls_replaced,
)

_TRANSPOSE = "relax.permute_dims"

_IMAGE = 4
"""Axes of an image."""

_INSIDE = {"relax.nn.conv1d": "W", CONVOLUTION: "HW", "relax.nn.conv3d": "DHW"}
"""The axes that a convolution slides over, as TVM names them."""

OF_ONE = (
    "clip",
    "nn.relu",
    "nn.leakyrelu",
    "nn.gelu",
    "nn.gelu_tanh",
    "nn.silu",
    "sigmoid",
    "tanh",
    "exp",
)
OF_TWO = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power")


def with_channels_last(module: Any) -> Any:
    """Let each convolution that has channels first transpose what it reads and what it gives.

    Args:
        module: Relax module.
    """
    return with_calls_replaced(module, _channels_last)


def _channels_last(call: Any, _bound: Sequence[Any], emit: Emit) -> Any:
    from tvm import relax

    inside = _INSIDE.get(str(call.op.name))
    if inside is None:
        return None
    first, last = (f"NC{inside}", f"OI{inside}"), (f"N{inside}C", f"{inside}IO")
    if (call.attrs.data_layout, call.attrs.kernel_layout) != first:
        return None
    slid = list(range(2, len(inside) + 2))
    data = emit(relax.op.permute_dims(call.args[0], [0, *slid, 1]))
    weights = emit(relax.op.permute_dims(call.args[1], [*slid, 1, 0]))
    layouts = {"data_layout": last[0], "kernel_layout": last[1], "out_layout": last[0]}
    found = emit(convolution_like(call, data, weights, **layouts))
    return relax.op.permute_dims(found, _back(len(slid) + 2))


def with_transposes_behind(module: Any) -> Any:
    """Move transposes of images behind what is done number by number, where two of them are none.

    Args:
        module: Relax module; its convolutions have channels last. Lines and volumes are images too where it
            has convolutions of them: other transposes, as those of attention, stay.
    """
    axes = {_IMAGE} | {len(inside) + 2 for name, inside in _INSIDE.items() if _has(module, name)}

    def moved(call: Any, bound: Sequence[Any], emit: Emit) -> Any:
        return _moved(call, bound, emit, axes)

    return with_calls_replaced(module, moved)


def _has(module: Any, operator: str) -> bool:
    from tvm import relax

    found: list[Any] = []

    def visit(expression: Any) -> None:
        if is_call(expression, operator):
            found.append(expression)

    for function in module.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return bool(found)


def _moved(call: Any, bound: Sequence[Any], emit: Emit, of_images: Collection[int]) -> Any:
    """What stands for a call; None where it stays."""
    from tvm import relax

    if is_call(call, _TRANSPOSE):
        return _transposed(call, bound)
    operator = str(call.op.name).removeprefix("relax.")
    counts = [_brought_first(each, of_images) for each in bound]
    if operator in OF_ONE and counts[0]:
        given = [bound[0].args[0], *call.args[1:]]
    elif operator in OF_TWO and any(counts):
        given = [_last(each, value, max(counts)) for each, value in zip(call.args, bound, strict=True)]
    else:
        return None
    if any(each is None for each in given):  # TVM overloads ==
        return None
    return relax.op.permute_dims(emit(relax.Call(call.op, given, call.attrs)), _back(max(counts)))


def _transposed(call: Any, bound: Sequence[Any]) -> Any:
    """A transpose of a transpose as one, and none where it leaves all axes; None of another expression."""
    from tvm import relax

    axes, before = _axes(call), _axes(bound[0])
    if axes is None:
        return None
    given = call.args[0]
    if before is not None:
        axes, given = [before[axis] for axis in axes], bound[0].args[0]
    if axes == sorted(axes):
        return given
    return None if before is None else relax.op.permute_dims(given, axes)


def _last(given: Any, bound: Any, count: int) -> Any:
    """An operand as it is read with channels last; None where it would have to be transposed for that.

    Args:
        given: the operand.
        bound: what it is bound to.
        count: of the axes of the image.
    """
    from tvm import ir, relax, tirx

    if _brought_first(bound, {count}):
        return bound.args[0]
    shape = shape_of(given)
    if isinstance(bound, tirx.FloatImm) or shape == ():
        return given
    if not isinstance(bound, ir.GenericConst) or shape is None or len(shape) > count:
        return None
    value = bound.value.numpy().reshape([1] * (count - len(shape)) + list(shape))
    return relax.const(np.ascontiguousarray(value.transpose(np.argsort(_back(count)))), kind_of(given))


def _brought_first(bound: Any, of_images: Collection[int]) -> int:
    """How many axes an expression has if it is an image whose channels were brought first; 0 of another."""
    axes = _axes(bound)
    return len(axes) if axes and len(axes) in of_images and axes == _back(len(axes)) else 0


def _back(count: int) -> list[int]:
    """The order of axes that has the channels first, of an image of so many axes with channels last."""
    return [0, count - 1, *range(1, count - 1)]


def _axes(bound: Any) -> list[int] | None:
    """The order of axes that a transpose gives; None of another expression."""
    if not is_call(bound, _TRANSPOSE) or bound.attrs.axes is None:
        return None
    return [int(axis) for axis in bound.attrs.axes]
