"""How each operator computes with some of its axes longer; `padded_rows` says when and why."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tlp_tvm.ansor.graph.layer_norm import OPERATOR as LAYER_NORM
from tlp_tvm.ansor.graph.padded_forms import Forms, shape_of
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.network.longer_axes import Padded, long_shape, same_axes

_MASKED = -1e30

_UNARY = frozenset(
    [
        "clip",
        "copy",
        "erf",
        "fast_erf",
        "fast_tanh",
        "negative",
        "nn.leaky_relu",
        "nn.relu",
        "sigmoid",
        "tanh",
    ]
)
"""Operators that give finite numbers of finite ones."""

_BINARY = frozenset(["add", "divide", "maximum", "minimum", "multiply", "power", "subtract"])
_SAME_DATA = frozenset(["expand_dims", "reshape", "squeeze"])
_SOFTMAX = frozenset(["nn.fast_softmax", "nn.softmax"])


class PaddingRules:
    """The long form of a call whose arguments have theirs."""

    def __init__(self, forms: Forms) -> None:
        """Begin.

        Args:
            forms: of the expressions before.
        """
        self._relay = load_tvm().relay
        self._forms = forms
        self.products = 0
        """Those that were made longer."""
        self._rules: dict[str, Callable[[Any], Padded | None]] = {
            "nn.dense": self._dense,
            "nn.batch_matmul": self._product,
            "nn.bias_add": self._bias,
            "strided_slice": self._slice,
            "transpose": self._transpose,
            LAYER_NORM: self._layer_norm,
            **dict.fromkeys(_UNARY, self._unary),
            **dict.fromkeys(_BINARY, self._binary),
            **dict.fromkeys(_SAME_DATA, self._reshape),
            **dict.fromkeys(_SOFTMAX, self._softmax),
        }

    def of_call(self, call: Any) -> Padded | None:
        """The long form of an operator's call; None where it has none.

        Args:
            call: typed, as it was.
        """
        rule = self._rules.get(str(call.op.name))
        return rule(call) if rule is not None and _is_float(call) else None

    def of_part(self, item: Any) -> Padded | None:
        """The long form of a part of a split that leaves the longer axes whole.

        Args:
            item: `relay.TupleGetItem`.
        """
        relay, split = self._relay, item.tuple_value
        if not (isinstance(split, relay.Call) and getattr(split.op, "name", "") == "split"):
            return None
        data, rank = self._long(split.args[0]), len(shape_of(split.args[0]))
        if data is None or int(split.attrs.axis) % rank in data.axes:
            return None
        parts = relay.Call(split.op, [data.expression], split.attrs)
        return Padded(relay.TupleGetItem(parts, item.index), data.axes, data.zero)

    def _dense(self, call: Any) -> Padded | None:
        if shape_of(call)[0] != self._forms.before or len(shape_of(call)) != 2:
            return None
        data = self._forms.long(call.args[0], frozenset({0}))
        self.products += 1
        weights = self._forms.plain(call.args[1])
        return Padded(self._relay.Call(call.op, [data.expression, weights], call.attrs), frozenset({0}))

    def _product(self, call: Any) -> Padded | None:
        """A batched product; padded where it is summed, one of its operands has zeros there."""
        left, right = call.args
        sums = (1 if call.attrs.transpose_a else 2, 2 if call.attrs.transpose_b else 1)
        axes = [self._forms.long_axes(each) for each in (left, right)]
        if not (axes[0] or axes[1]) or 0 in axes[0] | axes[1]:
            return None
        summed = sums[0] in axes[0] or sums[1] in axes[1]
        wanted = [each | {place} if summed else each for each, place in zip(axes, sums, strict=True)]
        longs = [self._forms.long(each, chosen) for each, chosen in zip((left, right), wanted, strict=True)]
        if summed and not any(place in long.zero for place, long in zip(sums, longs, strict=True)):
            return None
        self.products += 1
        found = {1} if 3 - sums[0] in axes[0] else set()
        found |= {2} if 3 - sums[1] in axes[1] else set()
        expressions = [long.expression for long in longs]
        return Padded(self._relay.Call(call.op, expressions, call.attrs), frozenset(found)) if found else None

    def _bias(self, call: Any) -> Padded | None:
        data = self._long(call.args[0])
        if data is None or int(call.attrs.axis) % len(shape_of(call)) in data.axes:
            return None
        return self._same(call, data, [data.expression, self._forms.plain(call.args[1])])

    def _layer_norm(self, call: Any) -> Padded | None:
        data = self._long(call.args[0])
        if data is None or data.axes != {0}:
            return None
        return self._same(call, data, [data.expression, *map(self._forms.plain, call.args[1:])])

    def _unary(self, call: Any) -> Padded | None:
        data = self._long(call.args[0])
        return None if data is None else self._same(call, data, [data.expression])

    def _binary(self, call: Any) -> Padded | None:
        shape = shape_of(call)
        moved = [len(shape) - len(shape_of(each)) for each in call.args]
        axes = frozenset(
            axis + more
            for each, more in zip(call.args, moved, strict=True)
            for axis in self._forms.long_axes(each)
        )
        if not axes:
            return None
        longs = []
        for each, more in zip(call.args, moved, strict=True):
            own = shape_of(each)
            longs.append(
                self._forms.long(
                    each, frozenset(i for i in range(len(own)) if i + more in axes and own[i] > 1)
                )
            )
        if call.op.name in ("divide", "power") and longs[1].axes:
            return None  # by what may be zero, or to a power that may be none
        return Padded(self._relay.Call(call.op, [each.expression for each in longs], call.attrs), axes)

    def _reshape(self, call: Any) -> Padded | None:
        data, shape = self._long(call.args[0]), shape_of(call)
        before = shape_of(call.args[0])
        if data is None or math.prod(before) != math.prod(shape):
            return None
        axes, zero = (same_axes(each, before, shape) for each in (data.axes, data.zero))
        if axes is None or zero is None:
            return None
        return Padded(
            self._relay.reshape(data.expression, long_shape(shape, axes, self._forms.after)), axes, zero
        )

    def _transpose(self, call: Any) -> Padded | None:
        data, rank = self._long(call.args[0]), len(shape_of(call))
        if data is None:
            return None
        order = [int(axis) % rank for axis in call.attrs.axes or reversed(range(rank))]
        axes, zero = (
            frozenset(place for place, axis in enumerate(order) if axis in each)
            for each in (data.axes, data.zero)
        )
        return Padded(self._relay.transpose(data.expression, order), axes, zero)

    def _slice(self, call: Any) -> Padded | None:
        """A slice that leaves the padded axes whole."""
        data, before, after = self._long(call.args[0]), shape_of(call.args[0]), shape_of(call)
        if data is None or any(before[axis] != after[axis] for axis in data.axes):
            return None
        named = call.attrs.axes
        places = (
            range(len(call.attrs.begin)) if named is None else [int(each) % len(before) for each in named]
        )
        strides = [int(each) for each in call.attrs.strides or [1]]
        begin = [0] * len(before)
        for place, first in zip(places, call.attrs.begin, strict=True):
            begin[place] = int(first) + (before[place] if int(first) < 0 else 0)
        if strides != [1] * len(strides) or any(begin[axis] for axis in data.axes):
            return None
        after = long_shape(after, data.axes, self._forms.after)
        end = [first + extent for first, extent in zip(begin, after, strict=True)]
        return Padded(self._relay.strided_slice(data.expression, begin, end), data.axes, data.zero)

    def _softmax(self, call: Any) -> Padded | None:
        data, rank = self._long(call.args[0]), len(shape_of(call))
        if data is None:
            return None
        axis = int(call.attrs.axis) % rank
        if axis not in data.axes:
            return self._same(call, data, [data.expression])
        mask = np.zeros(self._forms.after, np.float32)
        mask[self._forms.before :] = _MASKED
        shape = [self._forms.after if place == axis else 1 for place in range(rank)]
        masked = self._relay.add(data.expression, self._relay.const(mask.reshape(shape)))
        return Padded(self._relay.Call(call.op, [masked], call.attrs), data.axes, frozenset({axis}))

    def _long(self, argument: Any) -> Padded | None:
        """An argument that is longer already."""
        axes = self._forms.long_axes(argument)
        return self._forms.long(argument, axes) if axes else None

    def _same(self, call: Any, data: Padded, arguments: list[Any]) -> Padded:
        return Padded(self._relay.Call(call.op, arguments, call.attrs), data.axes)


def _is_float(call: Any) -> bool:
    kind = call.checked_type
    return hasattr(kind, "shape") and str(kind.dtype) == "float32"
