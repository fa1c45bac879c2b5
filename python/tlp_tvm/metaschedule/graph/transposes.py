"""Images that stay in one order of axes: what is done number by number does not need another one.

TVM's conversion of layouts knows some operators; around others, as the clip of MobileNetV2 and the residual
sums of ConvNeXt, it brings the channels first, and back behind them: copies of whole images, and an
activation that no longer belongs to the convolution before it.
"""

from __future__ import annotations

from collections.abc import Sequence
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
_BACK = (0, 3, 1, 2)
"""The order of axes that has the channels first, of an image with channels last."""

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
    """Let each convolution transpose what it reads and what it gives.

    Args:
        module: Relax module; its convolutions have channels first.
    """
    return with_calls_replaced(module, _channels_last)


def _channels_last(call: Any, _bound: Sequence[Any], emit: Emit) -> Any:
    from tvm import relax

    if not is_call(call, CONVOLUTION) or (call.attrs.data_layout, call.attrs.kernel_layout) != (
        "NCHW",
        "OIHW",
    ):
        return None
    data = emit(relax.op.permute_dims(call.args[0], [0, 2, 3, 1]))
    weights = emit(relax.op.permute_dims(call.args[1], [2, 3, 1, 0]))
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO", "out_layout": "NHWC"}
    return relax.op.permute_dims(emit(convolution_like(call, data, weights, **layouts)), list(_BACK))


def with_transposes_behind(module: Any) -> Any:
    """Move transposes of images behind what is done number by number, where two of them are none.

    Args:
        module: Relax module; its convolutions have channels last.
    """
    return with_calls_replaced(module, _moved)


def _moved(call: Any, bound: Sequence[Any], emit: Emit) -> Any:
    """What stands for a call; None where it stays."""
    from tvm import relax

    if is_call(call, _TRANSPOSE):
        return _transposed(call, bound)
    operator = str(call.op.name).removeprefix("relax.")
    if operator in OF_ONE and _is_back(bound[0]):
        given = [bound[0].args[0], *call.args[1:]]
    elif operator in OF_TWO and any(map(_is_back, bound)):
        given = [_last(each, value) for each, value in zip(call.args, bound, strict=True)]
    else:
        return None
    if None in given:
        return None
    return relax.op.permute_dims(emit(relax.Call(call.op, given, call.attrs)), list(_BACK))


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


def _last(given: Any, bound: Any) -> Any:
    """An operand as it is read with channels last; None where it would have to be transposed for that."""
    from tvm import ir, relax, tirx

    if _is_back(bound):
        return bound.args[0]
    shape = shape_of(given)
    if isinstance(bound, tirx.FloatImm) or shape == ():
        return given
    if not isinstance(bound, ir.GenericConst) or shape is None or len(shape) > len(_BACK):
        return None
    value = bound.value.numpy().reshape([1] * (len(_BACK) - len(shape)) + list(shape))
    return relax.const(np.ascontiguousarray(value.transpose(np.argsort(_BACK))), kind_of(given))


def _is_back(bound: Any) -> bool:
    """Whether an expression is an image whose channels were brought first."""
    return _axes(bound) == list(_BACK)


def _axes(bound: Any) -> list[int] | None:
    """The order of axes that a transpose gives; None of another expression."""
    if not is_call(bound, _TRANSPOSE) or bound.attrs.axes is None:
        return None
    return [int(axis) for axis in bound.attrs.axes]
