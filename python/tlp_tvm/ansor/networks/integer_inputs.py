"""Which integers a network takes: ids of a table's rows, or 0 and 1, as masks and types have them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm

MASK = 2
"""Integers of an input that is not only looked up are below this."""


_OF_SHAPES = ("ones_like", "zeros_like", "full_like", "shape_of", "ndarray_size")
"""Operators whose results say nothing of the values that they take."""


def integer_bounds(module: Any, inputs: Collection[str]) -> dict[str, int]:
    """What the integers of each input must be below.

    An input's integers are followed to every table in which they are looked up; the smallest one bounds them.
    Where they become real numbers, or nothing is looked up, they are no ids.

    Args:
        module: Relay module.
        inputs: names of the inputs among the variables of "main".

    Returns:
        Name to bound, of the inputs that are integers or truth values.
    """
    relay = load_tvm().relay
    module = relay.transform.InferType()(module)
    rows: dict[str, list[int]] = {}
    numbers: set[str] = set()
    sources: dict[Any, set[str]] = {}

    def visit(expression: Any) -> None:
        if isinstance(expression, relay.Var):
            name = str(expression.name_hint)
            sources[expression] = {name} if name in inputs and not _is_real(expression) else set()
        elif isinstance(expression, relay.TupleGetItem):
            sources[expression] = sources.get(expression.tuple_value, set())
        elif isinstance(expression, relay.Tuple):
            sources[expression] = set[str]().union(
                *(sources.get(field, set()) for field in expression.fields)
            )
        elif isinstance(expression, relay.Call):
            sources[expression] = follow(expression)

    def follow(call: Any) -> set[str]:
        taken = [sources.get(argument, set()) for argument in call.args]
        name_of_operator = str(getattr(call.op, "name", ""))
        if name_of_operator in _OF_SHAPES:
            return set()
        if name_of_operator == "take":
            table, axis = call.args[0].checked_type.shape, call.attrs.axis
            for name in taken[1]:
                rows.setdefault(name, []).append(_extent(table, axis))
            return taken[0]
        found = set[str]().union(*taken)
        if _is_real(call):
            numbers.update(found)
            return set()
        return found

    relay.analysis.post_order_visit(module["main"], visit)
    return {
        str(variable.name_hint): _bound(str(variable.name_hint), rows, numbers)
        for variable in module["main"].params
        if str(variable.name_hint) in inputs and not _is_real(variable)
    }


def _bound(name: str, rows: dict[str, list[int]], numbers: Collection[str]) -> int:
    fewest = min(rows.get(name, [MASK]))
    return min(fewest, MASK) if name in numbers else fewest


def _extent(shape: Any, axis: Any) -> int:
    if axis is not None:
        return int(shape[int(axis)])
    count = 1
    for extent in shape:
        count *= int(extent)
    return count


def _is_real(expression: Any) -> bool:
    return any(str(kind.dtype).startswith(("float", "bfloat")) for kind in _tensors(expression.checked_type))


def _tensors(kind: Any) -> Iterator[Any]:
    if hasattr(kind, "fields"):
        for field in kind.fields:
            yield from _tensors(field)
    elif hasattr(kind, "dtype"):
        yield kind
