"""The blocks in which a program reads its packed weights, as the loops of TVM say."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.lowered.dialect import PARALLEL, SERIAL, Dialect

MOST_BYTES = 256 << 10
"""Of a block: it has to stay in a second-level cache, of 512 KiB in small ones."""

LEAST_BYTES = 256 << 10
"""Of an array that is not in that cache anyway."""

SHORT = 4 << 10
"""Bytes of a block that is not taken apart into those of an inner loop."""


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


def reads(dialect: Dialect, body: Any, arrays: Collection[Any]) -> Iterator[Read]:
    """Where a function reads arrays.

    Args:
        dialect: its words.
        body: of the function.
        arrays: as `Dialect.array_of` has them.
    """
    for loops, statement in leaves(dialect, body):
        stores = isinstance(statement, dialect.nodes.BufferStore)
        for load in dialect.loads_in(statement.value) if stores else ():
            if dialect.array_of(load) in arrays and len(load.indices) == 1:
                yield Read(loops, dialect.buffer_of(load), load.indices[0])


def leaves(dialect: Dialect, body: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The statements of a function that hold no others, and the loops around each, the outermost first.

    Args:
        dialect: its words.
        body: of the function.
    """
    nodes = dialect.nodes
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(body, ())]
    while waiting:
        statement, loops = waiting.pop()
        if isinstance(statement, nodes.For):
            waiting.append((statement.body, (*loops, statement)))
        elif isinstance(statement, nodes.SeqStmt):
            waiting += [(each, loops) for each in statement]
        elif isinstance(statement, nodes.IfThenElse):
            cases = (statement.then_case, statement.else_case)
            waiting += [(each, loops) for each in cases if each is not None]
        elif hasattr(statement, "body"):
            waiting.append((statement.body, loops))
        else:
            yield loops, statement


def block_of(dialect: Dialect, read: Read) -> Block | None:
    """The block that is used several times before the next one, if that fits a cache; else what a loop reads.

    Args:
        dialect: words of the function.
        read: of packed weights.
    """
    size, steps = dialect.item_bytes(read.buffer), steps_of(dialect, read.loops, read.index)
    if steps is None or size * math.prod(map(int, dialect.shape_of(read.buffer))) < LEAST_BYTES:
        return None
    found: Block | None = None
    for depth, loop in enumerate(read.loops[:-1]):
        if found is not None and (found.same > 1 or found.bytes <= SHORT or _comes_back(read, steps, depth)):
            break
        inner = [(step, int(each.extent)) for step, each in zip(steps, read.loops, strict=True)][depth + 1 :]
        count = math.prod(extent for step, extent in inner if step)
        if size * count > MOST_BYTES or 1 + sum(step * (extent - 1) for step, extent in inner) != count:
            continue
        same = _same(dialect, read, loop) if loop.kind == PARALLEL else int(steps[depth] != 0)
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


def steps_of(dialect: Dialect, loops: Sequence[Any], index: Any) -> list[int] | None:
    """How far an index moves with each loop around it, 0 for parallel ones.

    Args:
        dialect: words of the function.
        loops: around it.
        index: into an array.

    Returns:
        None where it is no sum of such steps.
    """
    number = dialect.nodes.IntImm
    if any(not isinstance(loop.extent, number) or int(loop.min) for loop in loops):
        return None
    found = dialect.moves(index, [loop.loop_var for loop in loops if loop.kind != PARALLEL])
    if not found or not all(isinstance(step, number) for step in found[:-1]):
        return None
    steps = iter(found)
    return [0 if loop.kind == PARALLEL else int(next(steps)) for loop in loops]


def _same(dialect: Dialect, read: Read, loop: Any) -> int:
    """Iterations of a parallel loop that read the same block, 0 where all do.

    Loops are fused into it: its variable is in the index as quotients and remainders.
    """
    zero = dialect.nodes.IntImm("int32", 0)
    index = dialect.substituted(read.index, {each.loop_var: zero for each in read.loops if each is not loop})
    places = _values(dialect.nodes, index, np.arange(int(loop.extent)))
    moves = np.zeros(0, int) if places is None else np.flatnonzero(np.diff(places)) + 1
    return int(np.gcd.reduce(moves))


def _values(nodes: Any, expression: Any, variable: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """An expression of one variable; None where something else is in it than `_ARITHMETIC`."""
    if isinstance(expression, nodes.IntImm):
        return np.full_like(variable, int(expression))
    if isinstance(expression, nodes.Var):
        return variable
    operation = _ARITHMETIC.get(type(expression).__name__)
    if operation is None:
        return None
    a, b = (_values(nodes, each, variable) for each in (expression.a, expression.b))
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
