"""Folds constants with NumPy: TVM compiles and runs a kernel for each, tens of milliseconds every time.

Batch norms and changes of layout make hundreds of them: 14 of the 24 s that preparing MobileNetV2 took. What
has no result here is left to TVM's own pass.
"""

from __future__ import annotations

import math
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

_PART = re.compile(r"(\d+)(\D+)")
"""The same of a layout of Ansor's, as "2ff3ry3rx16ff": every part has a size."""

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
            changed = not _same(fields, expression.fields)
            made[expression] = _with_fields("Tuple", expression, fields) if changed else expression
        elif isinstance(expression, relay.TupleGetItem):
            whole = made.get(expression.tuple_value, expression.tuple_value)
            if isinstance(whole, relay.Tuple):
                made[expression] = whole.fields[expression.index]
            else:
                same = whole.same_as(expression.tuple_value)
                index = expression.index
                made[expression] = (
                    expression if same else _with_fields("TupleGetItem", expression, whole, index)
                )

    relay.analysis.post_order_visit(main.body, visit)
    body = made.get(main.body, main.body)
    if body.same_as(main.body):
        return module
    folded = _with_fields("Function", main, main.params, body)
    return tvm.IRModule({**module.functions, module.get_global_var("main"): folded})


def _with_arguments(call: Any, arguments: list[Any]) -> Any:
    if _same(arguments, call.args):
        return call
    return _with_fields("Call", call, call.op, arguments, call.attrs, call.type_args)


def _with_fields(kind: str, original: Any, *fields: Any) -> Any:
    """The same expression of other fields, on the device that TVM has planned; old ones do not plan here."""
    relay = load_tvm().relay
    home = relay.function if kind == "Function" else relay.expr
    copied = getattr(home, f"{kind}WithFields", None)
    return copied(original, *fields) if copied else getattr(relay, kind)(*fields)


def _same(some: Any, others: Any) -> bool:
    return all(a.same_as(b) for a, b in zip(some, others, strict=True))


def _value(call: Any, arguments: list[Any]) -> Any:
    """A call of constants as a constant; None where it is not one, or its operator is not known here.

    Of one that splits a constant, a tuple of them.
    """
    relay = load_tvm().relay
    name, operands = str(call.op.name), arguments
    if name == "split" and isinstance(arguments[0], relay.Constant):
        return relay.Tuple([_constant(each, call) for each in _parts(call, arguments[0].data.numpy())])
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
    return _constant(found, call)


def _constant(value: Array, call: Any) -> Any:
    """A constant in the place of a call, on its device if TVM has planned that."""
    relay = load_tvm().relay
    found = relay.const(np.ascontiguousarray(value), str(value.dtype))
    device = getattr(call, "virtual_device_", None)
    return relay.expr.ConstantWithFields(found, found.data, device) if device else found


def _parts(call: Any, value: Array) -> list[Array]:
    axis = int(call.attrs.axis)
    ends = np.cumsum([int(part.shape[axis]) for part in call.checked_type.fields])[:-1]
    return np.split(value, ends, axis)


def _evaluated(name: str, call: Any, values: list[Array]) -> Array | None:
    if name == "concatenate":
        return np.concatenate(values, axis=int(call.attrs.axis))
    if name == "layout_transform":
        return _in_layout(values[0], str(call.attrs.src_layout), str(call.attrs.dst_layout))
    if name == "auto_scheduler_layout_transform":
        return _in_parts(values[0], str(call.attrs.src_layout), str(call.attrs.dst_layout))
    if name == "nn.contrib_conv2d_winograd_weight_transform":
        return _for_winograd(values[0], int(call.attrs.tile_size))
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


def _in_parts(value: Array, before: str, after: str) -> Array | None:
    """A weight whose axes are cut into parts, as a program of Ansor's reads them.

    None where `before` is cut already, or a part is missing.
    """
    whole = [(axis, int(size)) for size, axis in _PART.findall(before)]
    parts = [(axis, int(size)) for size, axis in _PART.findall(after)]
    by_axis = {axis: [i for i, (part, _) in enumerate(parts) if part == axis] for axis, _ in whole}
    if len(by_axis) != len(whole) or tuple(size for _, size in whole) != value.shape:
        return None
    if any(math.prod(parts[i][1] for i in by_axis[axis]) != size for axis, size in whole):
        return None
    cut = [i for axis, _ in whole for i in by_axis[axis]]
    if len(cut) != len(parts):
        return None
    return np.transpose(value.reshape([parts[i][1] for i in cut]), np.argsort(cut))


def _for_winograd(weight: Array, tile: int) -> Array | None:
    """Weights (O, I, k, k) of a convolution that computes tiles of `tile` x `tile` pixels in Winograd's way.

    Returns:
        (tile + k - 1, tile + k - 1, O, I); None for other numbers than floats, or where TVM names its
        matrices otherwise.
    """
    util = load_tvm().topi.nn.winograd_util
    taps = weight.shape[-1]
    if weight.dtype.kind != "f" or not hasattr(util, "_cook_toom_convolution"):
        return None
    points = util._interpolation_points(tile + taps - 2)
    matrix = util._cook_toom_convolution(points, tile, taps)[2].astype(weight.dtype).astype(np.float64)
    rows = weight.reshape(-1, taps * taps).astype(np.float64) @ np.kron(matrix, matrix).T
    tiles = rows.reshape(*weight.shape[:2], len(matrix), len(matrix))
    return np.asarray(np.moveaxis(tiles, (2, 3), (0, 1)), weight.dtype)
