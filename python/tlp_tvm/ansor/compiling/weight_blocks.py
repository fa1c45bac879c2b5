"""The blocks in which a program reads its packed weights, as the loops of TVM say."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 256 << 10
"""Of a block: it has to stay in a second-level cache, of 512 KiB in small ones."""

LEAST_BYTES = 256 << 10
"""Of an array that is not in that cache anyway."""

SHORT = 4 << 10
"""Bytes of a block that is not taken apart into those of an inner loop."""

SERIAL, PARALLEL, VECTORISED, UNROLLED = 0, 1, 2, 3
"""TVM's kinds of loops."""


class Read(NamedTuple):
    """Where a function reads an array.

    Attributes:
        loops: around it, the outermost first.
        buffer: of one axis.
        index: into it.
    """

    loops: tuple[Any, ...]
    buffer: Any
    index: Any


class Block(NamedTuple):
    """What one iteration of a loop reads of an array.

    Attributes:
        depth: of the loop among those around the read.
        bytes: that it reads, side by side.
        same: iterations, one after the other, that read the same.
    """

    depth: int
    bytes: int
    same: int = 1


def reads(tir: Any, body: Any, arrays: Collection[Any]) -> Iterator[Read]:
    """Where a function reads arrays.

    Args:
        tir: `tvm.tir`.
        body: of the function.
        arrays: the variables that hold them.
    """
    for loops, statement in leaves(tir, body):
        for load in _loads(tir, statement.value) if isinstance(statement, tir.BufferStore) else ():
            if load.buffer.data in arrays and len(load.indices) == 1:
                yield Read(loops, load.buffer, load.indices[0])


def leaves(tir: Any, body: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The statements of a function that hold no others, and the loops around each, the outermost first.

    Args:
        tir: `tvm.tir`.
        body: of the function.
    """
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(body, ())]
    while waiting:
        statement, loops = waiting.pop()
        if isinstance(statement, tir.For):
            waiting.append((statement.body, (*loops, statement)))
        elif isinstance(statement, tir.SeqStmt):
            waiting += [(each, loops) for each in statement]
        elif isinstance(statement, tir.IfThenElse):
            cases = (statement.then_case, statement.else_case)
            waiting += [(each, loops) for each in cases if each is not None]
        elif hasattr(statement, "body"):
            waiting.append((statement.body, loops))
        else:
            yield loops, statement


def _loads(tir: Any, value: Any) -> list[Any]:
    found: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, tir.BufferLoad):
            found.append(node)

    tir.stmt_functor.post_order_visit(value, visit)
    return found


def block_of(tvm: Any, read: Read) -> Block | None:
    """The block that is used several times before the next one, if that fits a cache; else what a loop reads.

    Args:
        tvm: the module.
        read: of packed weights.
    """
    size, steps = item_bytes(tvm, read.buffer), steps_of(tvm, read.loops, read.index)
    if steps is None or size * math.prod(int(extent) for extent in read.buffer.shape) < LEAST_BYTES:
        return None
    found: Block | None = None
    for depth, loop in enumerate(read.loops[:-1]):
        if found is not None and (found.same > 1 or found.bytes <= SHORT or _comes_back(read, steps, depth)):
            break
        inner = [(step, int(each.extent)) for step, each in zip(steps, read.loops, strict=True)][depth + 1 :]
        count = math.prod(extent for step, extent in inner if step)
        if size * count > MOST_BYTES or 1 + sum(step * (extent - 1) for step, extent in inner) != count:
            continue
        same = _same(tvm.tir, read, loop) if loop.kind == PARALLEL else int(steps[depth] != 0)
        used = same * math.prod(extent for step, extent in inner if not step)
        if used > 1:
            found = Block(depth, size * count, same)
    return found


def _comes_back(read: Read, steps: Sequence[int], depth: int) -> bool:
    """Whether a loop around other loops over the array reads the same in each of its iterations."""
    return not steps[depth] and any(
        step and loop.kind == SERIAL
        for step, loop in zip(steps[depth + 1 :], read.loops[depth + 1 :], strict=True)
    )


def item_bytes(tvm: Any, buffer: Any) -> int:
    """Bytes of an array's element.

    Args:
        tvm: the module.
        buffer: of the array.
    """
    return int(tvm.runtime.DataType(buffer.dtype).bits) // 8


def steps_of(tvm: Any, loops: Sequence[Any], index: Any) -> list[int] | None:
    """How far an index moves with each loop around it, 0 for parallel ones.

    Args:
        tvm: the module.
        loops: around it.
        index: into an array.

    Returns:
        None where it is no sum of such steps.
    """
    if any(not isinstance(loop.extent, tvm.tir.IntImm) or int(loop.min) for loop in loops):
        return None
    moving = [loop.loop_var for loop in loops if loop.kind != PARALLEL]
    found = list(tvm.arith.detect_linear_equation(index, moving))
    if not found or not all(isinstance(step, tvm.tir.IntImm) for step in found[:-1]):
        return None
    steps = iter(found)
    return [0 if loop.kind == PARALLEL else int(next(steps)) for loop in loops]


def _same(tir: Any, read: Read, loop: Any) -> int:
    """Iterations of a parallel loop that read the same block, 0 where all do.

    Loops are fused into it: its variable is in the index as quotients and remainders.
    """
    first = {each.loop_var: 0 for each in read.loops if each is not loop}
    index = tir.stmt_functor.substitute(read.index, first)
    places = _values(tir, index, np.arange(int(loop.extent)))
    moves = np.zeros(0, int) if places is None else np.flatnonzero(np.diff(places)) + 1
    return int(np.gcd.reduce(moves))


def _values(tir: Any, expression: Any, variable: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """An expression of one variable; None where something else is in it than `_ARITHMETIC`."""
    if isinstance(expression, tir.IntImm):
        return np.full_like(variable, int(expression))
    if isinstance(expression, tir.Var):
        return variable
    operation = _ARITHMETIC.get(type(expression).__name__)
    if operation is None:
        return None
    a, b = (_values(tir, each, variable) for each in (expression.a, expression.b))
    return None if a is None or b is None else operation(a, b)


_ARITHMETIC = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Min": np.minimum,
    "Max": np.maximum,
}
