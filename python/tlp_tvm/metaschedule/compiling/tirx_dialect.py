"""The words of the TVMs of today."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tlp_tvm.lowered.dialect import DATA, SECOND_LEVEL, TO_READ, Dialect
from tlp_tvm.metaschedule.graph.fusing import WEIGHTS

_FETCH = "tlp_tvm_fetch"

_MEANING = f"""
define linkonce_odr i32 @{_FETCH}(ptr %place) alwaysinline nounwind {{
  call void @llvm.prefetch.p0(ptr %place, i32 {TO_READ}, i32 {SECOND_LEVEL}, i32 {DATA}) #0
  ret i32 0
}}
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
attributes #0 = {{ memory(inaccessiblemem: readwrite) }}
"""
"""A prefetch that reads nothing, in LLVM's language, which takes TVM's for a read of whatever array may be
there, and would write the sums of a product into memory before each."""


class TirxDialect(Dialect):
    """`tvm.tirx`; an array is a variable, and one of one axis a view of another."""

    def __init__(self, tvm: Any) -> None:
        """Look at a TVM.

        Args:
            tvm: the module.
        """
        import tvm_ffi

        self._tvm, self._ffi = tvm, tvm_ffi
        self.nodes, self.load = tvm.tirx, tvm.ir.TensorLoad

    def visit(self, node: Any, seen: Callable[[Any], None]) -> None:
        self._ffi.structural_walk(node, seen)

    def array_of(self, access: Any) -> Any:
        return self.buffer_of(access)

    def buffer_of(self, access: Any) -> Any:
        return access.source if isinstance(access, self.load) else access.buffer

    def shape_of(self, buffer: Any) -> Sequence[Any]:
        return list(buffer.ty.shape)

    def item_bytes(self, buffer: Any) -> int:
        return int(self._tvm.DataType(str(buffer.ty.dtype)).bits) // 8

    def weights_of(self, function: Any) -> Collection[Any]:
        constant = {function.params[int(place)] for place in (function.attrs or {}).get(WEIGHTS, ())}
        found = set()

        def view(node: Any) -> None:
            if any(each in constant for each in self.variables_in(node.data)):
                found.add(node.buffer)

        if constant:
            self._ffi.structural_walk(function.body, (self.nodes.DeclBuffer, view))
        return found

    def substituted(self, node: Any, values: Mapping[Any, Any]) -> Any:
        return self._ffi.structural_map(node, (self.nodes.Var, lambda each: values.get(each, each)))

    def with_loops(self, body: Any, changed: Callable[[Any], Any]) -> Any:
        def other(loop: Any) -> Any:
            found = changed(loop)
            return loop if found is None else found

        return self._ffi.structural_map(body, (self.nodes.For, other))

    def moves(self, index: Any, variables: Sequence[Any]) -> Sequence[Any]:
        from tvm.sym.pattern import detect_linear_equation

        return list(detect_linear_equation(index, list(variables)))

    def simplified(self, expression: Any) -> Any:
        return self._tvm.sym.Analyzer().simplify(expression)

    def prefetch(self, address: Any) -> Any:
        return self.nodes.call_extern("int32", _FETCH, address)

    def fetching(self, body: Any) -> Any:
        meaning = self._tvm.ir.StringImm(_MEANING)
        return self.nodes.AttrStmt(self.nodes.const(0, "int32"), "pragma_import_llvm", meaning, body)
