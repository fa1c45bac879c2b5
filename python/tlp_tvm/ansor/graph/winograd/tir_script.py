"""Operators whose loops are written by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.lowered.loop_script import LoopScript

BY_HAND = "loop_by_hand"
"""Name of the loops, which is in LLVM's language too."""

_KIND = "float32"


def computed(
    name: str, read: Any, write: Sequence[int], written: Callable[[LoopScript, Any, Any], None]
) -> Any:
    """A tensor that is computed from another.

    Args:
        name: of the operation.
        read: the other, of `te`.
        write: the tensor's shape.
        written: writes the loops, for the two arrays.
    """
    tvm = load_tvm()

    def body(arrays: Sequence[Any], results: Sequence[Any]) -> Any:
        built = tvm.tir.ir_builder.create()
        written(_TirScript(tvm.tir, built), *(built.buffer_ptr(each) for each in (arrays[0], results[0])))
        return built.get()

    return tvm.te.extern([tuple(write)], [read], body, name=name, dtype=_KIND)


class _TirScript(LoopScript):
    """`tvm.tir.ir_builder`."""

    def __init__(self, tir: Any, built: Any) -> None:
        self._tir, self._built = tir, built

    def parallel(self, count: int) -> AbstractContextManager[Any]:
        return self._loop(count, "parallel")

    def serial(self, count: int) -> AbstractContextManager[Any]:
        return self._loop(count, "serial")

    def vectorised(self, count: int) -> AbstractContextManager[Any]:
        return self._loop(count, "vectorize")

    def array(self, shape: Sequence[int]) -> Any:
        return self._built.allocate(_KIND, tuple(shape), name="numbers", scope="global")

    def store(self, array: Any, value: Any, places: Sequence[Any]) -> None:
        array[tuple(places)] = value

    def number(self, value: float) -> Any:
        return self._tir.const(value, _KIND)

    def both(self, one: Any, other: Any) -> Any:
        return self._tir.all(one, other)

    def chosen(self, condition: Any, value: Any, otherwise: Any) -> Any:
        return self._tir.if_then_else(condition, value, otherwise)

    def where(self, condition: Any) -> AbstractContextManager[Any]:
        scope: AbstractContextManager[Any] = self._built.if_scope(condition)
        return scope

    def either(self, condition: Any, written: Callable[[bool], None]) -> None:
        with self._built.if_scope(condition):
            written(True)
        with self._built.else_scope():
            written(False)

    def _loop(self, count: int, kind: str) -> AbstractContextManager[Any]:
        loop: AbstractContextManager[Any] = self._built.for_range(0, count, name=BY_HAND, kind=kind)
        return loop
