"""How each operator of Relax computes with some of its axes longer; `more_rows` says when and why.

What an operator gives in its long form is cut, so that it has the shape that it had; who can take the long
form looks through the cut, and a cut that nobody reads is gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlp_tvm.metaschedule.graph.replaced_calls import FLOAT, Emit, Written, is_call, kind_of, shape_of
from tlp_tvm.metaschedule.graph.transposes import OF_TWO
from tlp_tvm.tuning.network.longer_axes import Padded, long_shape, same_axes

PRODUCT, CUT = "relax.matmul", "relax.strided_slice"

PAD = "padded"
"""Name of functions that pad."""

_NEVER_FUSED = 8
"""As TVM numbers functions by what they can be fused with. A product does not take a padded sum along: TVM's
rules for its loops fail at two operators behind each other there."""

_RESHAPE = "relax.reshape"
_MASKED = -1e30

_UNARY = (
    *("clip", "erf", "negative", "sigmoid", "tanh"),
    *("nn.gelu", "nn.gelu_tanh", "nn.leakyrelu", "nn.relu", "nn.silu"),
)
"""Operators that give finite numbers of finite ones."""

_SAME_DATA = ("expand_dims", "flatten", "reshape", "squeeze")


@dataclass(frozen=True)
class _Given:
    """An argument.

    Attributes:
        plain: in its own shape.
        bound: what it is bound to.
        shape: its own.
        long: its long form; one without longer axes where it has none.
    """

    plain: Any
    bound: Any
    shape: tuple[int, ...]
    long: Padded


class RowRules:
    """Replaces calls by such with longer axes, where an argument has them, or a product needs them."""

    def __init__(self, before: int, after: int) -> None:
        """Begin.

        Args:
            before: the extent that is made longer.
            after: what it becomes.
        """
        self._before, self._after = before, after
        self._longs: dict[Any, Padded] = {}
        self._made: dict[Any, Padded] = {}
        self._begun: dict[Any, Padded] = {}
        self.products = 0
        """Those that were made longer."""
        self._rules: dict[str, Callable[[Any, Sequence[_Given], Emit], Padded | None]] = {
            "matmul": self._product,
            "permute_dims": self._transposed,
            "nn.layer_norm": self._layer_norm,
            "nn.softmax": self._softmax,
            **dict.fromkeys(_UNARY, self._unary),
            **dict.fromkeys(OF_TWO, self._binary),
            **dict.fromkeys(_SAME_DATA, self._reshaped),
        }

    def replaced(self, call: Any, bound: Sequence[Any], emit: Emit) -> Any:
        """What stands for a call; None where it stays (`replaced_calls.Replacement`)."""
        from tvm import relax

        rule, shape = self._rules.get(str(call.op.name).removeprefix("relax.")), shape_of(call)
        if rule is None or shape is None or kind_of(call) != FLOAT:
            return None
        given = [self._given(plain, each) for plain, each in zip(call.args, bound, strict=True)]
        long = rule(call, given, emit)
        if long is None:
            return None
        whole = emit(long.expression)
        self._longs[whole] = Padded(whole, long.axes, long.zero)
        axes = sorted(long.axes)
        return relax.op.strided_slice(whole, axes, [0] * len(axes), [self._before] * len(axes))

    def _given(self, plain: Any, bound: Any) -> _Given:
        known = self._longs.get(bound.args[0]) if is_call(bound, CUT) else self._begun.get(plain)
        return _Given(plain, bound, shape_of(plain) or (), known or Padded(plain, frozenset()))

    def _longer(self, given: _Given, axes: frozenset[int], emit: Emit) -> Padded:
        """An argument with these axes longer, each of which has the extent `before`."""
        if given.long.axes == axes:
            return given.long
        if not axes:
            return Padded(given.plain, axes)
        source = given.bound.args[0] if is_call(given.bound, _RESHAPE) else given.plain
        key = source, given.shape, axes
        if key not in self._made:
            begin = given.long if given.long.axes < axes else Padded(given.plain, frozenset())
            new = axes - begin.axes
            widths = [(0, (self._after - self._before) * (axis in new)) for axis in range(len(given.shape))]
            self._made[key] = Padded(_padded(begin.expression, widths, emit), axes, begin.zero | new)
        return self._made[key]

    def _product(self, call: Any, given: Sequence[_Given], emit: Emit) -> Padded | None:
        """A product of matrices; padded where it is summed, one of its operands has zeros there."""
        left, right = given
        axes, columns = left.long.axes, right.long.axes
        batched = len(left.shape) == len(right.shape) == 3
        if len(left.shape) == 2 and not columns and left.shape[0] == self._before:
            axes, last = frozenset({0}), 0
        elif batched and (axes or columns) and 0 not in axes | columns:
            last = 1
        else:
            return None
        summed = last + 1 in axes or last in columns
        if summed:
            axes, columns = axes | {last + 1}, columns | {last}
        longs = self._longer(left, axes, emit), self._longer(right, columns, emit)
        if summed and last + 1 not in longs[0].zero and last not in longs[1].zero:
            return None
        found = (axes & {last}) | (columns & {last + 1})
        if not found:
            return None
        self.products += 1
        return Padded(_call(call, [each.expression for each in longs]), found)

    def _layer_norm(self, call: Any, given: Sequence[_Given], emit: Emit) -> Padded | None:
        """Mostly the first that tokens come to: what it reads is longer from there on, for others too."""
        first, rank = given[0], len(given[0].shape)
        data, axes = first.long, {int(axis) % rank for axis in call.attrs.axes}
        if not data.axes and axes == {rank - 1} and first.shape[-2:-1] == (self._before,):
            data = self._begun[first.plain] = self._longer(first, frozenset({rank - 2}), emit)
        if not data.axes or data.axes & axes:
            return None
        return Padded(_call(call, [data.expression, *call.args[1:]]), data.axes)

    def _unary(self, call: Any, given: Sequence[_Given], _emit: Emit) -> Padded | None:
        data = given[0].long
        return Padded(_call(call, [data.expression, *call.args[1:]]), data.axes) if data.axes else None

    def _binary(self, call: Any, given: Sequence[_Given], emit: Emit) -> Padded | None:
        rank = len(shape_of(call) or ())
        moved = [rank - len(each.shape) for each in given]
        axes = frozenset(
            axis + more for each, more in zip(given, moved, strict=True) for axis in each.long.axes
        )
        if not axes:
            return None
        longs = []
        for each, more in zip(given, moved, strict=True):
            own = frozenset(i for i, extent in enumerate(each.shape) if i + more in axes and extent > 1)
            longs.append(self._longer(each, own, emit))
        if call.op.name in ("relax.divide", "relax.power") and longs[1].axes:
            return None  # by what may be zero, or to a power that may be none
        return Padded(_call(call, [each.expression for each in longs]), axes)

    def _reshaped(self, call: Any, given: Sequence[_Given], _emit: Emit) -> Padded | None:
        from tvm import relax

        data, before, shape = given[0].long, given[0].shape, shape_of(call) or ()
        if not data.axes or math.prod(before) != math.prod(shape):
            return None
        axes, zero = (same_axes(each, before, shape) for each in (data.axes, data.zero))
        if axes is None or zero is None:
            return None
        return Padded(relax.op.reshape(data.expression, long_shape(shape, axes, self._after)), axes, zero)

    def _transposed(self, call: Any, given: Sequence[_Given], _emit: Emit) -> Padded | None:
        data, rank = given[0].long, len(given[0].shape)
        if not data.axes:
            return None
        order = [int(axis) % rank for axis in call.attrs.axes or reversed(range(rank))]
        axes, zero = (
            frozenset(place for place, axis in enumerate(order) if axis in each)
            for each in (data.axes, data.zero)
        )
        return Padded(_call(call, [data.expression]), axes, zero)

    def _softmax(self, call: Any, given: Sequence[_Given], emit: Emit) -> Padded | None:
        from tvm import relax

        data, rank = given[0].long, len(given[0].shape)
        axis = int(call.attrs.axis) % rank
        if not data.axes:
            return None
        if axis not in data.axes:
            return Padded(_call(call, [data.expression]), data.axes)
        mask = np.zeros(self._after, np.float32)
        mask[self._before :] = _MASKED
        shape = [self._after if place == axis else 1 for place in range(rank)]
        masked = emit(relax.op.add(data.expression, relax.const(mask.reshape(shape))))
        return Padded(_call(call, [masked]), data.axes, frozenset({axis}))


def _call(call: Any, arguments: Sequence[Any]) -> Any:
    """The same operator of other arguments."""
    from tvm import relax

    return relax.Call(call.op, list(arguments), call.attrs)


def _padded(expression: Any, widths: Sequence[tuple[int, int]], emit: Emit) -> Any:
    """An expression with zeros at the end of axes; a constant stays one."""
    from tvm import ir, relax, te, topi

    if isinstance(expression, ir.GenericConst):
        return relax.const(np.pad(expression.value.numpy(), widths))
    shape = shape_of(expression) or ()
    given = te.placeholder(shape, FLOAT, "given")
    padded = topi.nn.pad(given, *([pair[end] for pair in widths] for end in (0, 1)))
    function = te.create_prim_func([given, padded]).without_attr("global_symbol")
    function = function.with_attr("op_pattern", _NEVER_FUSED)
    return emit(Written(function, (expression,), tuple(int(extent) for extent in padded.shape), PAD))
