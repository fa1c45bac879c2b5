"""What a network computes of its weights alone is computed once, by NumPy.

TVM's own pass compiles a function for each such call: half a minute for EfficientNet-B0's 500.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.metaschedule.loading.locate import load_tvm

Array = NDArray[Any]

_BY_ELEMENT: dict[str, Callable[..., Array]] = {
    "relax.add": np.add,
    "relax.subtract": np.subtract,
    "relax.multiply": np.multiply,
    "relax.divide": np.divide,
    "relax.sqrt": np.sqrt,
}
"""Those that IEEE 754 rounds rightly, so that a compiled function gives the same bits."""


def with_constants_folded(module: Any) -> Any:
    """Compute what folded batch norms and layouts ask of weights; other calls are left to TVM's pass.

    Args:
        module: Relax module.
    """
    tvm = load_tvm()
    from tvm import relax

    @relax.expr_functor.mutator
    class Folded(relax.PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            """A constant in the place of a call of constants."""
            new = self.visit_expr_post_order(call)
            if not isinstance(new, relax.Call) or not isinstance(new.op, tvm.ir.Op):
                return new
            values = [self._value(each) for each in new.args]
            found = _computed(new, values)
            return new if found is None else relax.const(found, str(found.dtype))

        def _value(self, argument: Any) -> Any:
            """A number or an array; the argument itself where it is neither."""
            if isinstance(argument, relax.Var):
                argument = self.lookup_binding(argument)
            if isinstance(argument, tvm.tirx.FloatImm):
                return np.asarray(float(argument.value), str(argument.ty))
            return argument.value.numpy() if isinstance(argument, tvm.ir.GenericConst) else argument

    folder = Folded(module)
    for name, function in module.functions.items():
        if isinstance(function, relax.Function):
            folder.builder_.update_func(name, folder.visit_expr(function))
    return relax.transform.CanonicalizeBindings()(folder.builder_.get())


def _computed(call: Any, values: Sequence[Any]) -> Array | None:
    """A call's result; None where an argument is no constant, or the operator another."""
    name, arrays = str(call.op.name), [each for each in values if isinstance(each, np.ndarray)]
    if name in _BY_ELEMENT and len(arrays) == len(values):
        found: Array = _BY_ELEMENT[name](*arrays)
    elif name == "relax.reshape" and isinstance(values[0], np.ndarray):
        found = values[0].reshape([int(extent) for extent in call.ty.shape])
    elif name == "relax.permute_dims" and isinstance(values[0], np.ndarray):
        axes = call.attrs.axes
        found = values[0].transpose(None if axes is None else [int(axis) for axis in axes])
    else:
        return None
    return np.ascontiguousarray(found) if _is_as_said(call, found) else None


def _is_as_said(call: Any, found: Array) -> bool:
    """Whether a result has the shape and the type of numbers that the call has."""
    return [int(extent) for extent in call.ty.shape] == list(found.shape) and _type(call) == str(found.dtype)


def _type(call: Any) -> str:
    kind = call.ty.dtype
    return str(getattr(kind, "dtype", kind))
