"""Folds constants with NumPy: TVM compiles and runs a kernel for each, tens of milliseconds every time.

Batch norms and changes of layout make hundreds of them: 14 of the 24 s that preparing MobileNetV2 took. What
has no result here is left to TVM's own pass.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.ansor.graph.padded_forms import shape_of
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.network.constant_arithmetic import evaluated

Array = NDArray[Any]

_AXIS = re.compile(r"(\d*)([A-Za-z])")
"""Of a layout: the size of a part, in small letters, and the axis."""

_FOLDS = "FoldConstant"


def folding_pass() -> Any:
    """A Relay pass in the place of `relay.transform.FoldConstant`; it infers types by itself."""
    tvm = load_tvm()
    infer, rest = tvm.relay.transform.InferType(), tvm.relay.transform.FoldConstant()

    def fold(module: Any, _: Any) -> Any:
        return rest(infer(_folded(infer(module))))

    return tvm.transform.module_pass(fold, opt_level=0, name="FoldConstantWithNumPy")


def folding_before() -> Any:
    """An instrument of passes for contexts in which TVM itself folds constants: NumPy is there first."""

    class FoldsBefore:
        def run_before_pass(self, module: Any, info: Any) -> None:
            if str(info.name) == _FOLDS and "main" in {str(each.name_hint) for each in module.functions}:
                after = _folded(tvm.relay.transform.InferType()(module))
                module.update_func(module.get_global_var("main"), after["main"])

    tvm = load_tvm()
    return tvm.instrument.pass_instrument(FoldsBefore)()


def _folded(module: Any) -> Any:
    """The module, its constants of "main" folded as far as the tables go."""
    tvm = load_tvm()
    relay = tvm.relay
    main = module["main"]
    made: dict[Any, Any] = {}

    def visit(expression: Any) -> None:
        if isinstance(expression, relay.Call) and isinstance(expression.op, tvm.ir.Op):
            arguments = [made.get(each, each) for each in expression.args]
            value = _value(expression, arguments)
            made[expression] = _with_arguments(expression, arguments) if value is None else value
        elif isinstance(expression, relay.Tuple):
            fields = [made.get(each, each) for each in expression.fields]
            made[expression] = expression if _same(fields, expression.fields) else relay.Tuple(fields)
        elif isinstance(expression, relay.TupleGetItem):
            whole = made.get(expression.tuple_value, expression.tuple_value)
            if isinstance(whole, relay.Tuple):
                made[expression] = whole.fields[expression.index]
            else:
                same = whole.same_as(expression.tuple_value)
                made[expression] = expression if same else relay.TupleGetItem(whole, expression.index)

    relay.analysis.post_order_visit(main.body, visit)
    body = made.get(main.body, main.body)
    if body.same_as(main.body):
        return module
    return tvm.IRModule(
        {**module.functions, module.get_global_var("main"): relay.Function(main.params, body)}
    )


def _with_arguments(call: Any, arguments: list[Any]) -> Any:
    if _same(arguments, call.args):
        return call
    return load_tvm().relay.Call(call.op, arguments, call.attrs, call.type_args)


def _same(some: Any, others: Any) -> bool:
    return all(a.same_as(b) for a, b in zip(some, others, strict=True))


def _value(call: Any, arguments: list[Any]) -> Any:
    """A call of constants as a constant; None where it is not one, or its operator is not known here.

    Of one that splits a constant, a tuple of them.
    """
    relay = load_tvm().relay
    name, operands = str(call.op.name), arguments
    if name == "split" and isinstance(arguments[0], relay.Constant):
        return relay.Tuple([relay.const(each) for each in _parts(call, arguments[0].data.numpy())])
    if not isinstance(call.checked_type, relay.TensorType):
        return None
    if name == "concatenate" and isinstance(arguments[0], relay.Tuple):
        operands = list(arguments[0].fields)
    if not operands or not all(isinstance(each, relay.Constant) for each in operands):
        return None
    found = _evaluated(name, call, [each.data.numpy() for each in operands])
    if found is None:
        return None
    kind = str(call.checked_type.dtype)
    if found.shape != shape_of(call) or str(found.dtype) != kind:
        return None
    return relay.const(np.ascontiguousarray(found), kind)


def _parts(call: Any, value: Array) -> list[Array]:
    axis = int(call.attrs.axis)
    ends = np.cumsum([int(part.shape[axis]) for part in call.checked_type.fields])[:-1]
    return [np.ascontiguousarray(part) for part in np.split(value, ends, axis)]


def _evaluated(name: str, call: Any, values: list[Array]) -> Array | None:
    if name == "concatenate":
        return np.concatenate(values, axis=int(call.attrs.axis))
    if name == "layout_transform":
        return _in_layout(values[0], str(call.attrs.src_layout), str(call.attrs.dst_layout))
    return evaluated(name, values, shape_of(call), getattr(call.attrs, "axes", None))


def _in_layout(value: Array, before: str, after: str) -> Array | None:
    """A tensor with its axes in another order, and split where `after` says so, as in "OIHW8i16o".

    None where `before` has split axes, or parts would not be of equal size.
    """
    wanted = [(axis, int(size or 1)) for size, axis in _AXIS.findall(after)]
    parts = {axis.upper(): size for axis, size in wanted if axis.islower()}
    whole = [axis for axis, _ in wanted if axis.isupper()]
    if not before.isupper() or sorted(before) != sorted(whole) or len(before) != value.ndim:
        return None
    if len(parts) + len(whole) != len(wanted) or any(
        extent % parts.get(axis, 1) for axis, extent in zip(before, value.shape, strict=True)
    ):
        return None
    names, extents = "", []
    for axis, extent in zip(before, value.shape, strict=True):
        size = parts.get(axis, 0)
        names += axis + axis.lower() * bool(size)
        extents += [extent // size, size] if size else [extent]
    return np.transpose(value.reshape(extents), [names.index(axis) for axis, _ in wanted])
