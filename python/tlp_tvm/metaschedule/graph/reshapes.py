"""What is done number by number behind a product of matrices is done to the matrix, so that it is fused.

A linear layer of torch is a product of matrices, between two reshapes. Behind the second one come the
activation and the residual sum, which TVM does not fuse into the product then; a reshape moves nothing. So
it is with convolutions whose groups have an axis of their own, and with the products of attention, which have
one axis for images and heads; their scale and mask come behind a reshape to two.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from tlp_tvm.metaschedule.graph.replaced_calls import (
    Emit,
    is_call,
    kind_of,
    shape_of,
    tidied,
    with_calls_replaced,
)
from tlp_tvm.metaschedule.graph.transposes import OF_ONE, OF_TWO

Shape = tuple[int, ...]

_RESHAPE, _REPEAT = "relax.reshape", "relax.broadcast_to"
_MATRIX, _HEADS, _GROUPED = 2, 3, 5
"""Axes of each."""


def with_reshapes_behind(module: Any) -> Any:
    """Move reshapes of matrices, and of images with groups, behind what is done number by number.

    There two of them are one, or none.

    Args:
        module: Relax module.
    """
    return with_calls_replaced(module, _moved)


def with_reshapes_of_heads_behind(module: Any) -> Any:
    """Move reshapes of attention's products behind what is done to these number by number.

    Args:
        module: Relax module.
    """
    return tidied(with_calls_replaced(module, functools.partial(_moved, heads=True)))


def without_broadcasts(module: Any) -> Any:
    """Leave out broadcasts that repeat nothing, which torch's products of many axes have before them.

    Args:
        module: Relax module.
    """
    return tidied(with_calls_replaced(module, _unrepeated))


def _unrepeated(call: Any, _bound: Sequence[Any], _emit: Emit) -> Any:
    """What a broadcast repeats once; None in the place of another call."""
    shape = shape_of(call)
    same = is_call(call, _REPEAT) and shape is not None and shape_of(call.args[0]) == shape
    return call.args[0] if same else None


def _moved(call: Any, bound: Sequence[Any], emit: Emit, *, heads: bool = False) -> Any:
    """What stands for a call; None where it stays."""
    from tvm import relax

    shape = shape_of(call)
    if shape is None:
        return None
    if is_call(call, _RESHAPE):
        return _reshaped(call.args[0], bound[0], shape) if is_call(bound[0], _RESHAPE) else None
    operator = str(call.op.name).removeprefix("relax.")
    find = _heads if heads else _matrix
    matrices = [matrix for each in bound if (matrix := find(each)) and shape_of(each) == shape]
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
    if len(matrix) == _HEADS and own is not None and own != shape:
        return _over_heads(given, own, shape, emit)
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


def _over_heads(given: Any, own: Shape, shape: Shape, emit: Emit) -> Any:
    """What is repeated over images and heads, as it fits products of which these share an axis.

    None of what is not the same for all images, or for all heads of several.
    """
    from tvm import relax

    images, heads = ((1,) * (len(shape) - len(own)) + own)[:2]
    if images > 1 or (shape[0] > 1 and heads > 1):
        return None
    return given if len(own) < len(shape) else emit(relax.op.reshape(given, own[1:]))


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


def _heads(bound: Any) -> Shape:
    """The shape of products of which images and heads share an axis, and here have two; empty of others."""
    inner = shape_of(bound.args[0]) if is_call(bound, _RESHAPE) else None
    outer = shape_of(bound) if inner is not None else None
    if inner is None or outer is None or len(inner) != _HEADS or len(outer) != _HEADS + 1:
        return ()
    return inner if inner[1:] == outer[2:] else ()
