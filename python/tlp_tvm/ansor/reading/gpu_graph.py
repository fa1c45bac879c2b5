"""What the native check for GPUs must know of a task: sizes of elements, axes, and who reads what where."""

from __future__ import annotations

from typing import Any

from tlp_tvm import _core
from tlp_tvm.ansor.loading.locate import load_tvm

_Dimensions = list[list[tuple[int, int]]]


def graph_of(dag: Any) -> _core.GpuGraph:
    """Describe a graph.

    Args:
        dag: `auto_scheduler.ComputeDAG`.
    """
    tvm = load_tvm()
    place = {operation: i for i, operation in enumerate(dag.ops)}
    plain: dict[Any, bool] = {}
    operations, reads = [], []
    for operation in dag.ops:
        conditions, accesses = _look_at(tvm, operation)
        # What an operation reads may be inlined into it, with its conditions.
        plain[operation] = not conditions and all(plain[tensor.op] for tensor in operation.input_tensors)
        kind = tvm.runtime.DataType(operation.output(0).dtype)
        spatial, reduced = list(getattr(operation, "axis", ())), list(getattr(operation, "reduce_axis", ()))
        size = max(1, kind.bits * kind.lanes // 8)
        vectors = 2 if not operation.input_tensors else int(plain[operation])
        operations.append(
            (size, vectors, [_extent(axis) for axis in spatial], [_extent(axis) for axis in reduced])
        )
        variables = [axis.var for axis in spatial + reduced]
        for producer in {load.producer.op for load in accesses}:
            same = [load for load in accesses if load.producer.op == producer]
            dimensions = _sums(tvm, same[0].indices, variables) if len(same) == 1 else None
            if dimensions is not None:
                reads.append((place[operation], place[producer], dimensions))
    return _core.GpuGraph(operations, reads)


def _extent(axis: Any) -> int:
    """Turns of an axis; -1 where they are not constant."""
    return int(getattr(getattr(axis.dom, "extent", None), "value", -1))


def _look_at(tvm: Any, operation: Any) -> tuple[bool, list[Any]]:
    """Whether an operation computes a condition, and its loads."""
    tir = tvm.tir
    conditions, loads = [], []

    def look(node: Any) -> None:
        if isinstance(node, tir.ProducerLoad):
            loads.append(node)
        elif isinstance(node, tir.Select) or (
            isinstance(node, tir.Call) and str(getattr(node.op, "name", "")) == "tir.if_then_else"
        ):
            conditions.append(node)

    for expression in getattr(operation, "body", ()):
        tir.stmt_functor.post_order_visit(expression, look)
    return bool(conditions), loads


def _sums(tvm: Any, indices: Any, variables: list[Any]) -> _Dimensions | None:
    """Indices as sums of axes times factors, or None."""
    dimensions: _Dimensions = []
    for index in indices:
        factors = tvm.arith.detect_linear_equation(index, variables)
        if len(factors) != len(variables) + 1:
            return None
        if not all(isinstance(factor, tvm.tir.IntImm) for factor in factors):
            return None
        dimensions.append([(i, int(f)) for i, f in enumerate(list(factors)[:-1]) if int(f)])
    return dimensions
