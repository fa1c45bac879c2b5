"""What is done number by number behind a product of matrices is done to the matrix, so that it is fused.

A linear layer of torch is a product of matrices, between two reshapes. Behind the second one come the
activation and the residual sum, which TVM does not fuse into the product then; a reshape moves nothing. So
it is with convolutions whose groups have an axis of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tlp_tvm.metaschedule.graph.replaced_calls import Emit, is_call, kind_of, shape_of, with_calls_replaced
from tlp_tvm.metaschedule.graph.transposes import OF_ONE, OF_TWO

Shape = tuple[int, ...]

_RESHAPE = "relax.reshape"
_MATRIX, _GROUPED = 2, 5
"""Axes of either."""


def with_reshapes_behind(module: Any) -> Any:
    """Move reshapes of matrices, and of images with groups, behind what is done number by number.

    There two of them are one, or none.

    Args:
        module: Relax module.
    """
    return with_calls_replaced(module, _moved)


def _moved(call: Any, bound: Sequence[Any], emit: Emit) -> Any:
    """What stands for a call; None where it stays."""
    from tvm import relax

    shape = shape_of(call)
    if shape is None:
        return None
    if is_call(call, _RESHAPE):
        return _reshaped(call.args[0], bound[0], shape) if is_call(bound[0], _RESHAPE) else None
    operator = str(call.op.name).removeprefix("relax.")
    matrices = [matrix for each in bound if (matrix := _matrix(each)) and shape_of(each) == shape]
    if not matrices or operator not in (*OF_ONE, *OF_TWO):
        return None
    given = list(call.args)
    for place, value in enumerate(bound[: 1 if operator in OF_ONE else 2]):
        operand = _operand(given[place], value, shape, matrices[0], emit)
        if operand is None:
            return None
        given[place] = operand
    return relax.op.reshape(emit(relax.Call(call.op, given, call.attrs)), shape)


def _operand(given: Any, bound: Any, shape: Shape, matrix: Shape, emit: Emit) -> Any:
    """An operand as it fits the matrix; None where it is repeated in another way."""
    from tvm import relax, tirx

    own = shape_of(given)
    if isinstance(bound, tirx.FloatImm) or own == () or own == shape[-1:] == matrix[-1:]:
        return given
    if len(matrix) == _GROUPED and own is not None and own[-1:] == shape[-1:] == (math.prod(own),):
        return _of_channels(bound, matrix)
    if own != shape:
        return None
    found = _reshaped(given, bound, matrix)
    return found if isinstance(found, relax.Var) else emit(found)


def _of_channels(bound: Any, grouped: Shape) -> Any:
    """A constant of one number a channel as it fits an image with groups; None of what is no constant."""
    from tvm import ir, relax

    if not isinstance(bound, ir.GenericConst):
        return None
    return relax.const(bound.value.numpy().reshape(grouped[-2:]), kind_of(bound))


def _reshaped(given: Any, bound: Any, shape: Shape) -> Any:
    """An expression in another shape, by one reshape or none."""
    from tvm import relax

    inner = bound.args[0] if is_call(bound, _RESHAPE) else given
    return inner if shape_of(inner) == shape else relax.op.reshape(inner, shape)


def _matrix(bound: Any) -> Shape:
    """The shape of the matrix, or of the image with groups, whose numbers an expression has in another shape.

    Empty of another expression.
    """
    inner = shape_of(bound.args[0]) if is_call(bound, _RESHAPE) else None
    outer = shape_of(bound) if inner is not None else None
    if inner is None or outer is None:
        return ()
    grouped = len(inner) == _GROUPED and inner[:3] == outer[:-1]
    return inner if len(inner) == _MATRIX or grouped else ()
