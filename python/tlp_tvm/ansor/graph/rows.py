"""Fewer axes: what only looks at the last axis runs on matrices, what is batched on three axes.

Importers make a linear layer on (batch, tokens, width) a batched product with its weights repeated, and put
reshapes between a product and what follows, so that neither bias nor activation is fused into it. Here every
linear layer becomes `nn.dense` on a matrix, and the reshapes move behind the operators that do not care.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tlp_tvm.ansor.graph.constants import folding_pass
from tlp_tvm.ansor.graph.padded_forms import shape_of
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.network.longer_axes import Shape

_UNARY = frozenset(
    [
        "abs",
        "cast",
        "ceil",
        "clip",
        "copy",
        "erf",
        "exp",
        "fast_erf",
        "fast_exp",
        "fast_tanh",
        "floor",
        "log",
        "negative",
        "nn.leaky_relu",
        "nn.relu",
        "rsqrt",
        "sigmoid",
        "sqrt",
        "tanh",
    ]
)
_BINARY = frozenset(["add", "divide", "maximum", "minimum", "multiply", "power", "subtract"])
_REDUCTIONS = frozenset(["max", "mean", "min", "sum"])
_SAME_DATA = frozenset(["broadcast_to", "expand_dims", "reshape", "squeeze"])
_LAST_AXIS = frozenset({"nn.softmax", "nn.fast_softmax"})


def with_fewer_axes(module: Any) -> Any:
    """Rewrite "main" so.

    Args:
        module: Relay module whose parameters are constants.

    Returns:
        The module, with types.
    """
    tvm = load_tvm()
    infer = tvm.relay.transform.InferType()
    main = infer(module)["main"]
    rewritten = tvm.relay.Function(main.params, _Rewriter().rewritten(main.body))
    return folding_pass()(tvm.IRModule.from_expr(rewritten))


class _Rewriter:
    """Every expression as it was, or short: its leading axes as one; or both.

    The short form of (a, b, c) is (a * b, c) after a linear layer; that of (a, b, c, d) is (a * b, c, d)
    after a batched product. So all axes but the first are the last ones of the original.
    """

    def __init__(self) -> None:
        self._relay = load_tvm().relay
        self._op = load_tvm().ir.Op
        self._plain: dict[Any, Any] = {}
        self._short: dict[Any, tuple[Any, int]] = {}  # with its rank
        self._made: dict[tuple[Any, Shape], Any] = {}  # of plain ones, so that patterns find each once

    def rewritten(self, root: Any) -> Any:
        """The expression, in the shape of the original."""
        self._relay.analysis.post_order_visit(root, self._visit)
        return self._plain_of(root)

    def _visit(self, expression: Any) -> None:
        relay = self._relay
        if expression in self._plain or expression in self._short or isinstance(expression, self._op):
            return
        if isinstance(expression, relay.Call) and isinstance(expression.op, self._op):
            self._visit_call(expression)
        elif isinstance(expression, relay.Tuple):
            self._plain[expression] = relay.Tuple([self._plain_of(each) for each in expression.fields])
        elif isinstance(expression, relay.TupleGetItem):
            whole = self._plain_of(expression.tuple_value)
            self._plain[expression] = relay.TupleGetItem(whole, expression.index)
        else:
            self._plain[expression] = expression

    def _visit_call(self, call: Any) -> None:
        short = self._short_call(call) if _is_tensor(call) else None
        if short is not None:
            self._short[call] = short
        elif _is_same_data(call):
            self._plain[call] = self._reshaped(
                self._plain_of(call.args[0]), shape_of(call.args[0]), shape_of(call)
            )
        else:
            arguments = [self._plain_of(each) for each in call.args]
            self._plain[call] = self._relay.Call(call.op, arguments, call.attrs, call.type_args)

    def _short_call(self, call: Any) -> tuple[Any, int] | None:
        """The short form of a call and its rank, or None where it has none, or gains nothing by it."""
        name = str(call.op.name)
        if name == "nn.dense":
            data = self._short_of(call.args[0], 2)
            return self._relay.Call(call.op, [data, self._plain_of(call.args[1])], call.attrs), 2
        if name == "nn.batch_matmul":
            return self._product(call)
        ranks = [self._short[argument][1] for argument in call.args if argument in self._short]
        if not ranks and name in _REDUCTIONS and _reduces_last(call):  # as a layer norm begins
            ranks = [2]
        if not ranks or len(shape_of(call)) < ranks[0]:
            return None
        short = self._any_other(name, call, ranks[0])
        return None if short is None else (short, ranks[0])

    def _any_other(self, name: str, call: Any, rank: int) -> Any:
        relay = self._relay
        if name in _UNARY:
            return relay.Call(call.op, [self._short_of(call.args[0], rank)], call.attrs)
        if name in _BINARY:
            operands = [self._operand(argument, shape_of(call), rank) for argument in call.args]
            return None if None in operands else relay.Call(call.op, operands, call.attrs)
        if name in _SAME_DATA:
            tail = shape_of(call)[1 - rank :]
            same = _is_same_data(call) and shape_of(call.args[0])[1 - rank :] == tail
            return self._short_of(call.args[0], rank) if same else None
        if name == "nn.bias_add" and _is_last(call.attrs.axis, call):
            return relay.nn.bias_add(
                self._short_of(call.args[0], rank), self._plain_of(call.args[1]), axis=-1
            )
        if name in _LAST_AXIS and _is_last(call.attrs.axis, call):
            function = getattr(relay.nn, name.removeprefix("nn."))
            return function(self._short_of(call.args[0], rank), axis=rank - 1)
        if name in _REDUCTIONS and _reduces_last(call):
            function = getattr(relay, name)
            return function(self._short_of(call.args[0], rank), axis=[rank - 1], keepdims=True)
        if name == "variance" and _reduces_last(call):
            data, mean = (self._operand(each, shape_of(call.args[0]), rank) for each in call.args)
            unbiased = bool(call.attrs.unbiased)
            return relay.variance(data, [rank - 1], True, unbiased=unbiased, with_mean=mean)
        return None

    def _product(self, call: Any) -> tuple[Any, int] | None:
        """A batched product: a linear layer if its weights are constant, and the same for the whole batch."""
        left, right = (self._plain_of(each) for each in call.args)
        weights = _one_matrix(right, bool(call.attrs.transpose_b))
        if weights is None or call.attrs.transpose_a:
            return self._relay.Call(call.op, [left, right], call.attrs), 3
        kind = str(call.attrs.out_dtype or "") or str(call.checked_type.dtype)
        dense = self._relay.nn.dense
        return dense(self._short_of(call.args[0], 2), self._relay.const(weights), out_dtype=kind), 2

    def _operand(self, argument: Any, shape: Shape, rank: int) -> Any:
        """An operand of an element-wise operator of that shape, in short; None for another broadcast."""
        own = shape_of(argument)
        if not own:
            return self._plain_of(argument)
        if own == shape:
            return self._short_of(argument, rank)
        padded = (1,) * (len(shape) - len(own)) + own
        lead, tail = padded[: 1 - rank], padded[1 - rank :]
        if lead == shape[: 1 - rank] and len(own) == len(shape):
            return self._short_of(argument, rank)
        if math.prod(lead) == 1 or lead == shape[: 1 - rank]:
            return self._reshaped(self._plain_of(argument), own, (math.prod(lead), *tail))
        return None

    def _plain_of(self, expression: Any) -> Any:
        if expression not in self._plain:
            short, rank = self._short[expression]
            shape = shape_of(expression)
            self._plain[expression] = self._reshaped(short, _short_shape(shape, rank), shape)
        return self._plain[expression]

    def _short_of(self, expression: Any, rank: int) -> Any:
        if expression in self._short and self._short[expression][1] == rank:
            return self._short[expression][0]
        shape = shape_of(expression)
        after = _short_shape(shape, rank)
        if (expression, after) not in self._made:
            self._made[expression, after] = self._reshaped(self._plain_of(expression), shape, after)
        return self._made[expression, after]

    def _reshaped(self, expression: Any, before: Shape, after: Shape) -> Any:
        """Reshape once, and only if it is one."""
        relay = self._relay
        if before == after:
            return expression
        if isinstance(expression, relay.Call) and expression.op == relay.op.get("reshape"):
            expression = expression.args[0]  # its shape is known only where it is typed: reshaped in any case
        return relay.reshape(expression, after)


def _one_matrix(right: Any, transposed: bool) -> Any:
    """Constant weights (columns out, columns in) of a batched product, if they are the same for the batch."""
    if not isinstance(right, load_tvm().relay.Constant):
        return None
    weights = right.data.numpy()
    if weights.ndim != 3 or not (weights == weights[:1]).all():
        return None
    return np.ascontiguousarray(weights[0] if transposed else weights[0].T)


def _is_tensor(expression: Any) -> bool:
    return hasattr(expression.checked_type, "shape")


def _is_same_data(call: Any) -> bool:
    """Whether a call gives the numbers of its argument in their order."""
    if str(call.op.name) not in _SAME_DATA:
        return False
    return math.prod(shape_of(call.args[0])) == math.prod(shape_of(call))


def _is_last(axis: Any, call: Any) -> bool:
    return int(axis) in {-1, len(shape_of(call)) - 1}


def _reduces_last(call: Any) -> bool:
    """Whether a reduction is over the last axis, and keeps it."""
    rank, axes = len(shape_of(call.args[0])), call.attrs.axis
    only_last = axes is not None and [int(axis) % rank for axis in axes] == [rank - 1]
    return bool(only_last and call.attrs.keepdims and not call.attrs.exclude)


def _short_shape(shape: Shape, rank: int) -> Shape:
    return (math.prod(shape[: 1 - rank]), *shape[1 - rank :])
