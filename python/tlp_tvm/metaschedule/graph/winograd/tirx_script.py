"""Functions of loops that are written by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tlp_tvm.lowered.loop_script import LoopScript
from tlp_tvm.metaschedule.loading.locate import load_tvm

_KIND = "float32"

_OPAQUE = 8
"""TVM's number of a function that is fused with no other."""

_BY_HAND = "written"
"""Name of the block around the loops: that of a function to be scheduled is "root"."""


def function(
    read: Sequence[int], write: Sequence[int], written: Callable[[LoopScript, Any, Any], None]
) -> Any:
    """A function from one array to another.

    Args:
        read: shape of the first.
        write: of the second.
        written: writes the loops, for the two.

    Returns:
        `tirx.PrimFunc`.
    """
    load_tvm()
    from tvm.script.ir_builder import IRBuilder
    from tvm.tirx.script import builder as script

    with IRBuilder() as built, script.prim_func(is_private=True, s_tir=True):
        script.func_attr({"tirx.noalias": True, "op_pattern": _OPAQUE, "tirx.is_scheduled": True})
        arrays = [
            script.arg(name, script.buffer(list(shape), _KIND, layout=None))
            for name, shape in (("read", read), ("write", write))
        ]
        with script.sblock(_BY_HAND):
            written(_TirxScript(script), *arrays)
    return built.get()


class _TirxScript(LoopScript):
    """`tvm.tirx.script.builder`."""

    def __init__(self, script: Any) -> None:
        self._script = script

    def parallel(self, count: int) -> AbstractContextManager[Any]:
        return self._loop(self._script.parallel, count)

    def serial(self, count: int) -> AbstractContextManager[Any]:
        return self._loop(self._script.serial, count)

    def vectorised(self, count: int) -> AbstractContextManager[Any]:
        return self._loop(self._script.vectorized, count)

    def array(self, shape: Sequence[int]) -> Any:
        return self._script.alloc_buffer(list(shape), _KIND, scope="local", layout=None)

    def store(self, array: Any, value: Any, places: Sequence[Any]) -> None:
        self._script.buffer_store(array, value, list(places))

    def number(self, value: float) -> Any:
        return self._script.float32(value)

    def both(self, one: Any, other: Any) -> Any:
        return self._script.And(one, other)

    def chosen(self, condition: Any, value: Any, otherwise: Any) -> Any:
        return self._script.if_then_else(condition, value, otherwise)

    @contextlib.contextmanager
    def where(self, condition: Any) -> Iterator[None]:
        with self._script.If(condition), self._script.Then():
            yield

    def either(self, condition: Any, written: Callable[[bool], None]) -> None:
        with self._script.If(condition):
            with self._script.Then():
                written(True)
            with self._script.Else():
                written(False)

    def _loop(self, kind: Any, count: int) -> AbstractContextManager[Any]:
        loop: AbstractContextManager[Any] = kind(0, count)
        return loop
