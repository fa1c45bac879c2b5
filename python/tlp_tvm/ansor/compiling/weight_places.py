"""How a program has its weights lie: Ansor lays out those of convolutions and products as loops read them.

TVM tells nobody but its own passes how. But it writes the program's computation anew, with other indices of
the same numbers, and both can be computed for every number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.errors import last_line_of

Places = NDArray[np.int32]
"""(n,) of each number as it lies now, the place where it lay in the network's own layout."""

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
}


def packed_places(dag: Any, state: Any) -> dict[int, Places]:
    """Of the weights that a program lays out anew, how they lie.

    Args:
        dag: `auto_scheduler.ComputeDAG` of the task.
        state: the program.

    Returns:
        Place among the DAG's tensors to the places of its numbers.

    Raises:
        ValueError: no such computation is understood.
    """
    try:
        rewritten = dag.rewrite_layout_from_state(state)
    except load_tvm().TVMError as error:
        raise ValueError(last_line_of(error)) from error
    free = layout_free(dag)
    return {
        i: _places(dag, rewritten, i, str(tensor.op.name))
        for i, tensor in enumerate(dag.tensors)
        if any(map(tensor.same_as, free))
    }


def layout_free(dag: Any) -> list[Any]:
    """The tensors that TVM may lay out anew: weights, and the second operand of a batched product.

    Args:
        dag: `auto_scheduler.ComputeDAG`.
    """
    return [
        tensor
        for operation in dag.ops
        for tensor in (getattr(operation, "attrs", None) or {}).get("layout_free_placeholders", ())
    ]


def _places(dag: Any, rewritten: Any, i: int, name: str) -> Places:
    """Both computations read the same numbers in the same turns of their loops."""
    loops, before = _read(dag, name)
    again, after = _read(rewritten, name)
    if loops != again:
        raise ValueError(f"{name}: expected a computation with the same loops, found others")
    used = {each: loops[each] for each in _variables(before)}
    shapes = [tuple(int(extent) for extent in each.tensors[i].shape) for each in (dag, rewritten)]
    if np.prod(list(used.values()), dtype=np.int64) != np.prod(shapes[0], dtype=np.int64):
        raise ValueError(f"{name}: expected each number to be read in one turn, found {used}")
    turns = np.meshgrid(*map(np.arange, used.values()), indexing="ij", sparse=True)
    of = dict(zip(used, turns, strict=True))
    lay, lies = (
        _flat([_value(each, of) for each in indices], shape)
        for indices, shape in zip((before, after), shapes, strict=True)
    )
    everywhere = tuple(used.values())
    places = np.full(int(np.prod(shapes[1], dtype=np.int64)), -1, np.int32)
    places[np.broadcast_to(lies, everywhere).ravel()] = np.broadcast_to(lay, everywhere).ravel()
    met = np.zeros(len(places), bool)
    met[places[places >= 0]] = True
    if not met.all():
        raise ValueError(f"{name}: expected each number to lie in one place")
    return places


def _read(dag: Any, name: str) -> tuple[dict[str, int], list[Any]]:
    """The loops of the operation that reads a tensor, with their extents, and by which indices it does."""
    tvm = load_tvm()
    found: list[tuple[Any, list[Any]]] = []
    for operation in dag.ops:

        def note(node: Any, operation: Any = operation) -> None:
            if isinstance(node, tvm.tir.ProducerLoad) and str(node.producer.op.name) == name:
                found.append((operation, list(node.indices)))

        for body in getattr(operation, "body", ()):
            tvm.tir.stmt_functor.post_order_visit(body, note)
    if len(found) != 1:
        raise ValueError(f"{name}: expected one operation that reads it once, found {len(found)}")
    operation, indices = found[0]
    loops = [*operation.axis, *operation.reduce_axis]
    extents = {str(each.var.name): int(each.dom.extent) for each in loops}
    if len(extents) != len(loops):
        raise ValueError(f"{name}: expected loops of different names, found {', '.join(extents)}")
    return extents, indices


def _variables(indices: list[Any]) -> list[str]:
    tvm = load_tvm()
    names: dict[str, None] = {}
    for each in indices:
        tvm.tir.stmt_functor.post_order_visit(
            each, lambda node: names.setdefault(str(node.name)) if isinstance(node, tvm.tir.Var) else None
        )
    return list(names)


def _value(index: Any, of: Mapping[str, NDArray[Any]]) -> Any:
    kind = type(index).__name__
    if kind == "Var" and str(index.name) in of:
        return of[str(index.name)]
    if kind == "IntImm":
        return int(index.value)
    if kind in _BINARY:
        return _BINARY[kind](_value(index.a, of), _value(index.b, of))
    raise ValueError(f"expected an index of sums, products and quotients of loops, found {index}")


def _flat(indices: list[Any], shape: tuple[int, ...]) -> Any:
    """The same in the memory of a tensor of this shape."""
    place: Any = np.int64(0)
    for index, extent in zip(indices, shape, strict=True):
        place = place * extent + index
    return place
