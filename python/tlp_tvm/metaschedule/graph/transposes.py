"""Images that stay in one order of axes: what is done number by number does not need another one.

TVM's conversion of layouts knows some operators; around others, as the clip of MobileNetV2 and the residual
sums of ConvNeXt, it brings the channels first, and back behind them: copies of whole images, and an
activation that no longer belongs to the convolution before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tlp_tvm.metaschedule.graph.replaced_calls import Emit, kind_of, shape_of, with_calls_replaced

_TRANSPOSE, _CONVOLUTION = "relax.permute_dims", "relax.nn.conv2d"
_BACK = (0, 3, 1, 2)
"""The order of axes that has the channels first, of an image with channels last."""

OF_ONE = (
    "clip",
    "relu",
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

    layouts = (call.attrs.data_layout, call.attrs.kernel_layout) if str(call.op.name) == _CONVOLUTION else ()
    if layouts != ("NCHW", "OIHW"):
        return None
    orders = ([0, 2, 3, 1], [2, 3, 1, 0])
    given = [emit(relax.op.permute_dims(each, order)) for each, order in zip(call.args, orders, strict=True)]
    convolution = relax.op.nn.conv2d(
        *given,
        strides=call.attrs.strides,
        padding=call.attrs.padding,
        dilation=call.attrs.dilation,
        groups=call.attrs.groups,
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_dtype=call.attrs.out_dtype,
    )
    return relax.op.permute_dims(emit(convolution), list(_BACK))


def with_transposes_behind(module: Any) -> Any:
    """Move transposes of images behind what is done number by number, where two of them are none.

    Args:
        module: Relax module; its convolutions have channels last.
    """
    return with_calls_replaced(module, _moved)


def _moved(call: Any, bound: Sequence[Any], emit: Emit) -> Any:
    """What stands for a call; None where it stays."""
    from tvm import relax

    name = str(call.op.name)
    if name == _TRANSPOSE:
        return _transposed(call, bound)
    operator = name.removeprefix("relax.")
    if operator in OF_ONE and _is_back(bound[0]):
        given = [bound[0].args[0], *call.args[1:]]
    elif operator in OF_TWO and any(map(_is_back, bound)):
        operands = [_last(each, value, emit) for each, value in zip(call.args, bound, strict=True)]
        if None in operands:
            return None
        given = operands
    else:
        return None
    return relax.op.permute_dims(emit(relax.Call(call.op, given, call.attrs)), list(_BACK))


def _transposed(call: Any, bound: Sequence[Any]) -> Any:
    """A transpose of a transpose as one, and none where it leaves all axes; None of another expression."""
    from tvm import relax

    axes, given = _axes(call), call.args[0]
    before = _axes(bound[0])
    if axes is not None and before is not None:
        axes, given = [before[axis] for axis in axes], bound[0].args[0]
    if axes == sorted(axes or [1, 0]):
        return given
    return None if before is None or axes is None else relax.op.permute_dims(given, axes)


def _last(given: Any, bound: Any, emit: Emit) -> Any:
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
    return emit(relax.const(np.ascontiguousarray(value.transpose(np.argsort(_BACK))), kind_of(given)))


def _is_back(bound: Any) -> bool:
    """Whether an expression is an image whose channels were brought first."""
    return _axes(bound) == list(_BACK)


def _axes(bound: Any) -> list[int] | None:
    """The order of axes that a transpose gives; None of another expression."""
    from tvm import relax

    if not isinstance(bound, relax.Call) or str(getattr(bound.op, "name", "")) != _TRANSPOSE:
        return None
    return None if bound.attrs.axes is None else [int(axis) for axis in bound.attrs.axes]
