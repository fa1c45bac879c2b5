"""Masks of attention that a network computes of nothing are constants, and what they do not need is left out.

An exported attention of torch compares token numbers to make a mask, mostly of zeros alone; it adds the
mask, and behind the softmax it looks for rows in which all is masked, four operators over all pairs of
tokens. Where the mask is known, so are these rows: there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.metaschedule.graph.constants import constant_value, folded
from tlp_tvm.metaschedule.graph.replaced_calls import (
    Emit,
    is_call,
    kind_of,
    shape_of,
    tidied,
    with_calls_replaced,
)
from tlp_tvm.tuning.network.constant_arithmetic import evaluated

_ADD, _SOFTMAX, _WHERE, _EQUAL = "relax.add", "relax.nn.softmax", "relax.where", "relax.equal"

_EXACT: dict[str, Callable[..., NDArray[Any]]] = {
    "add": np.add,
    "equal": np.equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_not": np.logical_not,
    "logical_or": np.logical_or,
    "not_equal": np.not_equal,
    "subtract": np.subtract,
    "where": np.where,
}
"""Of which NumPy gives the same bits, of small whole numbers and truth values too."""

_AXES = 4
"""Of attention's scores: images, heads, and tokens twice."""

_ALL = ("logical_not", "max", "logical_not")
"""From whether a row is masked to what is compared, changes of type left out: not one that is not."""


def with_plain_masks(module: Any) -> Any:
    """Compute masks that depend on nothing, and leave out sums with zeros and the look for masked rows.

    Args:
        module: Relax module whose parameters are constants.
    """
    unmasked = with_calls_replaced(with_calls_replaced(module, _computed), _without_zeros)
    return tidied(with_calls_replaced(tidied(unmasked), _Looks().replaced))


def _computed(call: Any, bound: Sequence[Any], _emit: Emit) -> Any:
    """A call of constants alone as a constant; None of another, or one that is not known."""

    def value(name: str, values: Sequence[Any], *how: Any) -> NDArray[Any] | None:
        found = _value(name, values, kind_of(call))
        return evaluated(name, values, *how) if found is None else found

    return folded(call, bound, value)


def _value(name: str, values: Sequence[Any], kind: str) -> NDArray[Any] | None:
    if name == "arange":
        return np.arange(*(each.item() for each in values), dtype=kind)
    if name == "astype":
        return np.asarray(values[0]).astype(kind)
    return np.asarray(_EXACT[name](*values)) if name in _EXACT else None


def _without_zeros(call: Any, bound: Sequence[Any], _emit: Emit) -> Any:
    """What a mask of zeros is added to; None of another call."""
    if is_call(call, _ADD):
        shape = shape_of(call) or ()
        for term, mask in ((call.args[0], bound[1]), (call.args[1], bound[0])):
            value = constant_value(mask)
            if value is None or value.any() or shape_of(term) != shape:
                continue
            if value.ndim == len(shape) == _AXES and value.shape[-2:] == shape[-2:]:
                return term
    return None


class _Looks:
    """Replaces what looks for masked rows behind a softmax."""

    def __init__(self) -> None:
        self._bound: dict[Any, Any] = {}

    def replaced(self, call: Any, bound: Sequence[Any], _emit: Emit) -> Any:
        """What stands for a call; None where it stays (`replaced_calls.Replacement`)."""
        self._bound.update(zip(call.args, bound, strict=True))
        if is_call(call, _WHERE) and is_call(bound[2], _SOFTMAX):
            (scores,) = bound[2].args
            if self._looks_at(call.args[0], scores) and self._has_no_masked_row(scores, bound[2]):
                return call.args[2]
        return None

    def _looks_at(self, rows: Any, scores: Any) -> bool:
        """Whether these are the rows of the scores in which all is masked."""
        found = self._skipped(rows)
        for name in _ALL:
            if (
                found is None
                or not is_call(found, f"relax.{name}")
                or (name == "max" and not _is_last(found, scores))
            ):
                return False
            found = self._skipped(found.args[0])
        if found is None or not is_call(found, _EQUAL) or not found.args[0].same_as(scores):
            return False
        value = constant_value(found.args[1])
        return value is not None and value.shape == () and bool(np.isneginf(value))

    def _skipped(self, expression: Any) -> Any:
        """What an expression is bound to, or what was brought to another type by that."""
        found = self._bound.get(expression)
        if found is None or not is_call(found, "relax.astype"):
            return found
        return self._bound.get(found.args[0])

    def _has_no_masked_row(self, scores: Any, softmax: Any) -> bool:
        """Whether scores are products alone, or their mask is known and leaves a number in each row."""
        found = self._bound.get(scores)
        if not _is_last(softmax, scores):
            return False
        if found is None or not is_call(found, _ADD):
            return self._is_of_products(scores)
        masks = [value for each in found.args if (value := constant_value(each)) is not None]
        others = [each for each in found.args if constant_value(each) is None]
        kept = all(np.isfinite(each).any(-1).all() for each in masks)
        return len(masks) == 1 and kept and all(map(self._is_of_products, others))

    def _is_of_products(self, expression: Any) -> bool:
        """Whether it is a product of matrices, scaled: of finite numbers it is finite."""
        value = constant_value(expression)
        if value is not None:
            return bool(np.isfinite(value).all())
        found = self._bound.get(expression)
        if found is None or is_call(found, "relax.matmul"):
            return found is not None
        if is_call(found, "relax.reshape"):
            return self._is_of_products(found.args[0])
        scaled = is_call(found, "relax.multiply") or is_call(found, "relax.divide")
        return scaled and all(map(self._is_of_products, found.args))


def _is_last(call: Any, scores: Any) -> bool:
    """Whether an operator goes over the last axis of the scores alone."""
    axis = call.attrs.axis
    axes = [int(axis)] if isinstance(axis, int) else [int(each) for each in axis or ()]
    return [each % len(shape_of(scores) or (1,)) for each in axes] == [len(shape_of(scores) or (1,)) - 1]
