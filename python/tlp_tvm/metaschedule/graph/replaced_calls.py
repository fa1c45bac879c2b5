"""Calls of a Relax network in the place of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tlp_tvm.metaschedule.loading.locate import load_tvm

CONVOLUTION = "relax.nn.conv2d"
FLOAT = "float32"
_ATTRIBUTES = (
    "strides",
    "padding",
    "dilation",
    "groups",
    "data_layout",
    "kernel_layout",
    "out_layout",
    "out_dtype",
)

Emit = Callable[[Any], Any]
"""Binds an expression, or what is `Computed` or `Written`, to a variable, which it returns."""


@dataclass(frozen=True)
class Computed:
    """What no operator of Relax computes.

    Attributes:
        compute: tensors of `tvm.te`, and `how` -> a tensor.
        given: Relax expressions in the place of these tensors.
        how: what it is told besides.
        name: of the function.
    """

    compute: Callable[..., Any]
    given: tuple[Any, ...]
    how: Mapping[str, Any]
    name: str


@dataclass(frozen=True)
class Written:
    """What is computed by loops of our own.

    Attributes:
        function: `tirx.PrimFunc`.
        given: Relax expressions that it takes.
        shape: of what it gives, of the type of the first of these.
        name: of the function.
    """

    function: Any
    given: tuple[Any, ...]
    shape: tuple[int, ...]
    name: str


Replacement = Callable[[Any, Sequence[Any], Emit], Any]
"""A call of an operator, what its arguments are bound to, how to bind more -> another expression, or None."""


def with_calls_replaced(module: Any, replacement: Replacement) -> Any:
    """Replace calls of operators, those of arguments first.

    Args:
        module: Relax module.
        replacement: of each call.
    """
    tvm = load_tvm()
    from tvm import relax

    @relax.expr_functor.mutator
    class Replaced(relax.PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            """What stands for a call."""
            new = self.visit_expr_post_order(call)
            if not isinstance(new, relax.Call) or not isinstance(new.op, tvm.ir.Op):
                return new
            bound = [self.lookup_binding(x) if isinstance(x, relax.Var) else x for x in new.args]
            replaced = replacement(new, bound, self.emitted)
            return new if replaced is None else replaced

        def emitted(self, value: Any) -> Any:
            """A variable that is bound to a value."""
            if isinstance(value, Computed):
                value = self.builder_.call_te(
                    value.compute, *value.given, **value.how, primfunc_name_hint=value.name
                )
            if isinstance(value, Written):
                name = self.builder_.add_func(value.function, value.name)
                kind = relax.TensorType(value.shape, kind_of(value.given[0]))
                value = relax.call_tir(name, relax.Tuple(value.given), kind)
            return self.builder_.emit(value)

    replacer = Replaced(module)
    for name, function in module.functions.items():
        if isinstance(function, relax.Function):
            replacer.builder_.update_func(name, replacer.visit_expr(function))
    return replacer.builder_.get()


def tidied(module: Any) -> Any:
    """A network without other names for variables, and without what nobody reads.

    Args:
        module: Relax module.
    """
    tvm = load_tvm()
    transform = tvm.relax.transform
    steps = [transform.CanonicalizeBindings(), transform.DeadCodeElimination()]
    return tvm.transform.Sequential(steps)(module)


def is_call(expression: Any, operator: str) -> bool:
    """Whether an expression is a call of an operator.

    Args:
        expression: also None, as what a parameter is bound to.
        operator: e.g. "relax.reshape".
    """
    load_tvm()
    from tvm import relax

    return isinstance(expression, relax.Call) and str(getattr(expression.op, "name", "")) == operator


def convolution_like(call: Any, data: Any, weights: Any, **changed: Any) -> Any:
    """A convolution with the attributes of another, but for those that are given.

    Args:
        call: of `CONVOLUTION`, or of one with another number of axes.
        data: what the new one reads.
        weights: of the new one.
        changed: attributes by name.
    """
    load_tvm()
    from tvm import relax

    known = {name: getattr(call.attrs, name) for name in _ATTRIBUTES}
    make = getattr(relax.op.nn, str(call.op.name).removeprefix("relax.nn."))
    return make(data, weights, **(known | changed))


def shapes_with_channels_last(
    call: Any, bound: Sequence[Any]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """What a convolution by constant weights is of: the shapes of image, weights and result.

    Args:
        call: of any operator.
        bound: what its arguments are bound to.

    Returns:
        None where it is no such convolution, has its channels elsewhere, or an extent is open.
    """
    load_tvm()
    from tvm.ir import GenericConst

    if not is_call(call, CONVOLUTION) or not isinstance(bound[1], GenericConst):
        return None
    given, weights, result = (shape_of(each) for each in (call.args[0], call.args[1], call))
    layouts = (str(call.attrs.data_layout), str(call.attrs.kernel_layout))
    if given is None or weights is None or result is None or layouts != ("NHWC", "HWIO"):
        return None
    return given, weights, result


def shape_of(expression: Any) -> tuple[int, ...] | None:
    """The shape of a tensor; None where an extent is open, or where it is no tensor."""
    from tvm.tirx import IntImm

    shape = getattr(expression.ty, "shape", None)
    if shape is None or not all(isinstance(extent, IntImm) for extent in shape):
        return None
    return tuple(int(extent) for extent in shape)


def has_floats(call: Any) -> bool:
    """Whether a call takes and gives what is computed here: TVM and torch round sums of other types apart."""
    return {kind_of(call.args[0]), kind_of(call)} == {FLOAT}


def kind_of(expression: Any) -> str:
    """The type of a tensor's numbers, e.g. "float32"."""
    kind = expression.ty.dtype
    return str(getattr(kind, "dtype", kind))
