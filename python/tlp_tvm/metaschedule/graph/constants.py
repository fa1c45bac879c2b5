"""What a network computes of its weights alone is computed once, by NumPy.

TVM's own pass compiles a function for each such call: half a minute for EfficientNet-B0's 500.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.metaschedule.graph.replaced_calls import kind_of, shape_of, with_calls_replaced
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.tuning.network.constant_arithmetic import evaluated


def with_constants_folded(module: Any) -> Any:
    """Compute what folded batch norms and layouts ask of weights; other calls are left to TVM's pass.

    Args:
        module: Relax module.
    """
    tvm = load_tvm()
    return tvm.relax.transform.CanonicalizeBindings()(with_calls_replaced(module, _constant))


def _constant(call: Any, bound: Sequence[Any], _emit: Any) -> Any:
    return folded(call, bound, evaluated)


def folded(call: Any, bound: Sequence[Any], evaluate: Callable[..., NDArray[Any] | None]) -> Any:
    """A call of constants as a constant; None where it is not one, or its operator is not known.

    Args:
        call: of an operator.
        bound: what its arguments are bound to.
        evaluate: as `constant_arithmetic.evaluated`.
    """
    from tvm import relax

    tensors = [each for each in bound if not isinstance(each, relax.ShapeExpr)]
    values = [value for each in tensors if (value := constant_value(each)) is not None]
    shape = shape_of(call)
    if not values or len(values) < len(tensors) or shape is None:
        return None
    found = evaluate(
        str(call.op.name).removeprefix("relax."), values, shape, getattr(call.attrs, "axes", None)
    )
    if found is None or found.shape != shape or str(found.dtype) != kind_of(call):
        return None
    return relax.const(np.ascontiguousarray(found), kind_of(call))


def constant_value(bound: Any) -> NDArray[Any] | None:
    """A constant, of a tensor or a number, as an array; None of another expression."""
    from tvm import ir, tirx

    if isinstance(bound, tirx.IntImm | tirx.FloatImm):
        return np.asarray(bound.value, str(bound.ty))
    value: NDArray[Any] | None = bound.value.numpy() if isinstance(bound, ir.GenericConst) else None
    return value
