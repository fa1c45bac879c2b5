"""The words of the TVMs that have Ansor, up to 0.19."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tlp_tvm.lowered.dialect import DATA, SECOND_LEVEL, TO_READ, Dialect

MOST_AXES = 5
"""Of an array in a network. One with more is of weights that are packed for the program."""


class TirDialect(Dialect):
    """`tvm.tir`."""

    def __init__(self, tvm: Any) -> None:
        """Look at a TVM.

        Args:
            tvm: the module.
        """
        self._tvm = tvm
        self.nodes, self.load = tvm.tir, tvm.tir.BufferLoad

    def visit(self, node: Any, seen: Callable[[Any], None]) -> None:
        self.nodes.stmt_functor.post_order_visit(node, seen)

    def array_of(self, access: Any) -> Any:
        return access.buffer.data

    def buffer_of(self, access: Any) -> Any:
        return access.buffer

    def shape_of(self, buffer: Any) -> Sequence[Any]:
        return list(buffer.shape)

    def item_bytes(self, buffer: Any) -> int:
        return int(self._tvm.runtime.DataType(buffer.dtype).bits) // 8

    def weights_of(self, function: Any) -> Collection[Any]:
        return {each.data for each in function.buffer_map.values() if len(each.shape) > MOST_AXES}

    def substituted(self, node: Any, values: Mapping[Any, Any]) -> Any:
        return self.nodes.stmt_functor.substitute(node, dict(values))

    def with_loops(self, body: Any, changed: Callable[[Any], Any]) -> Any:
        return self.nodes.stmt_functor.ir_transform(body, None, changed, ["tir.For"])

    def moves(self, index: Any, variables: Sequence[Any]) -> Sequence[Any]:
        return list(self._tvm.arith.detect_linear_equation(index, list(variables)))

    def simplified(self, expression: Any) -> Any:
        return self._tvm.arith.Analyzer().simplify(expression)

    def prefetch(self, address: Any) -> Any:
        return self.nodes.call_intrin("int32", "tir.prefetch", address, TO_READ, SECOND_LEVEL, DATA)
