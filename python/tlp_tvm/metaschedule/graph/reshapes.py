"""What is done number by number behind a product of matrices is done to the matrix, so that it is fused.

A linear layer of torch is a product of matrices, between two reshapes. Behind the second one come the
activation and the residual sum, which TVM does not fuse into the product then; a reshape moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlp_tvm.metaschedule.graph.replaced_calls import Emit, is_call, shape_of, with_calls_replaced
from tlp_tvm.metaschedule.graph.transposes import OF_ONE, OF_TWO

Shape = tuple[int, ...]

_RESHAPE = "relax.reshape"


def with_reshapes_behind(module: Any) -> Any:
    """Move reshapes of matrices behind what is done number by number, where two of them are one, or none.

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
    if own != shape:
        return None
    found = _reshaped(given, bound, matrix)
    return found if isinstance(found, relax.Var) else emit(found)


def _reshaped(given: Any, bound: Any, shape: Shape) -> Any:
    """An expression in another shape, by one reshape or none."""
    from tvm import relax

    inner = bound.args[0] if is_call(bound, _RESHAPE) else given
    return inner if shape_of(inner) == shape else relax.op.reshape(inner, shape)


def _matrix(bound: Any) -> Shape:
    """The shape of the matrix whose numbers an expression has in another; empty of another expression."""
    shape = shape_of(bound.args[0]) if is_call(bound, _RESHAPE) else None
    return shape if shape is not None and len(shape) == 2 else ()
