"""Weights that come from memory while a processor multiplies by those before.

A tuned program reads packed weights block by block, and a block for several rows. While it computes the
first rows the processor waits for memory, and then memory for the processor. Where a share of the next block
is fetched in each iteration over this one, both work all the time. A processor's own prefetcher does not look
that far ahead: it ends at each page of 4 KiB.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LINE = 64
"""Bytes that memory gives at once."""

CACHED = 320 << 10
"""Bytes of a second-level cache, of 512 KiB in small ones, for a block and what is fetched of the next."""

MOST_BYTES = 256 << 10
"""Of a block."""

LEAST_BYTES = 256 << 10
"""Of an array that is worth it: a smaller one stays in that cache."""

LEAST_AHEAD = 4 << 10
"""Bytes between what is read and what is fetched, about: of short blocks, a later one than the next."""

MOST_LINES = 8
"""Fetched at a time; of more, the last would wait for the first."""

MOST_AXES = 5
"""Of an array in a network. One with more is of weights that are packed for the program."""

_SECOND_LEVEL, _DATA, _TO_READ = 2, 1, 0
"""LLVM's words for the cache that a line is fetched to, and for what."""

_SERIAL, _PARALLEL, _VECTORISED = 0, 1, 2
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


def prefetching(tvm: Any) -> Any:
    """The pass, for TVM's first phase (`tir.add_lower_pass`), when arrays have one axis and loops are loops.

    Args:
        tvm: the module.
    """
    return tvm.tir.transform.prim_func_pass(
        lambda function, _module, _context: with_prefetches(tvm, function),
        opt_level=0,
        name="tlp_tvm.prefetching",
    )


def with_prefetches(tvm: Any, function: Any) -> Any:
    """Fetch the next block of packed weights while one is used.

    Args:
        tvm: the module.
        function: `tir.PrimFunc`.

    Returns:
        The function, which computes the same; the very object where nothing is fetched.
    """
    tir = tvm.tir
    packed = {each.data for each in function.buffer_map.values() if len(each.shape) > MOST_AXES}
    added: dict[Any, list[Any]] = {}
    for read in reads(tir, function.body, packed) if packed else ():
        block = block_of(tvm, read)
        found = None if block is None else _fetch(tvm, read, block)
        if found is not None:
            added.setdefault(found[0], []).extend(found[1])
    if not added:
        return function

    def changed(loop: Any) -> Any:
        if (statements := added.get(loop.loop_var)) is None:
            return None
        body = tir.SeqStmt([*statements, loop.body])
        return tir.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, None, loop.annotations)

    return function.with_body(tir.stmt_functor.ir_transform(function.body, None, changed, ["tir.For"]))


def reads(tir: Any, body: Any, arrays: Collection[Any]) -> Iterator[Read]:
    """Where a function reads arrays.

    Args:
        tir: `tvm.tir`.
        body: of the function.
        arrays: the variables that hold them.
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
        elif isinstance(statement, tir.BufferStore):
            for load in _loads(tir, statement.value):
                if load.buffer.data in arrays and len(load.indices) == 1:
                    yield Read(loops, load.buffer, load.indices[0])
        elif hasattr(statement, "body"):
            waiting.append((statement.body, loops))


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
    size, steps = _item_bytes(tvm, read.buffer), _steps(tvm, read)
    if steps is None or size * math.prod(int(extent) for extent in read.buffer.shape) < LEAST_BYTES:
        return None
    found: Block | None = None
    for depth, loop in enumerate(read.loops[:-1]):
        if found is not None and (
            found.same > 1 or found.bytes <= LEAST_AHEAD or _comes_back(read, steps, depth)
        ):
            break
        inner = [(step, int(each.extent)) for step, each in zip(steps, read.loops, strict=True)][depth + 1 :]
        count = math.prod(extent for step, extent in inner if step)
        apart = 1 + sum(step * (extent - 1) for step, extent in inner) != count
        same = _same(tvm.tir, read, loop) if loop.kind == _PARALLEL else int(steps[depth] != 0)
        used = same * math.prod(extent for step, extent in inner if not step)
        if size * count <= MOST_BYTES and not apart and used > 1:
            found = Block(depth, size * count, same)
    return found


def _comes_back(read: Read, steps: Sequence[int], depth: int) -> bool:
    """Whether a loop around other loops over the array reads the same in each of its iterations."""
    return not steps[depth] and any(
        step and loop.kind == _SERIAL
        for step, loop in zip(steps[depth + 1 :], read.loops[depth + 1 :], strict=True)
    )


def _item_bytes(tvm: Any, buffer: Any) -> int:
    return int(tvm.runtime.DataType(buffer.dtype).bits) // 8


def _steps(tvm: Any, read: Read) -> list[int] | None:
    """How far the index moves with each loop, 0 for parallel ones; None where it is no sum of such steps."""
    if any(not isinstance(loop.extent, tvm.tir.IntImm) or int(loop.min) for loop in read.loops):
        return None
    moving = [loop.loop_var for loop in read.loops if loop.kind != _PARALLEL]
    found = list(tvm.arith.detect_linear_equation(read.index, moving))
    if not found or not all(isinstance(step, tvm.tir.IntImm) for step in found[:-1]):
        return None
    steps = iter(found)
    return [0 if loop.kind == _PARALLEL else int(next(steps)) for loop in read.loops]


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


def _fetch(tvm: Any, read: Read, block: Block) -> tuple[Any, list[Any]] | None:
    """The variable of a loop, and what fetches a share of a later block in each of its iterations."""
    tir, size = tvm.tir, _item_bytes(tvm, read.buffer)
    outer, *inner = read.loops[block.depth :]
    fetched = min(block.bytes, CACHED - block.bytes)
    last, shares, share = outer, block.same, outer.loop_var % block.same
    for loop in inner[:-1]:
        often = shares * int(loop.extent) * LINE >= fetched + LINE
        if loop.kind != _SERIAL or (often and fetched <= shares * LINE * MOST_LINES):
            break
        last, shares, share = loop, shares * int(loop.extent), share * loop.extent + loop.loop_var
    elements = math.ceil(fetched / size / shares)
    lines = math.ceil(elements * size / LINE)
    if lines > MOST_LINES:
        return None
    ahead = block.same * math.ceil(LEAST_AHEAD / block.bytes)
    later = {outer.loop_var: outer.loop_var + ahead, **{loop.loop_var: 0 for loop in inner}}
    start = tir.stmt_functor.substitute(read.index, later) + share * elements
    places = [tvm.arith.Analyzer().simplify(start + line * (LINE // size)) for line in range(lines)]
    return last.loop_var, [_prefetch(tir, read.buffer, place) for place in places]


def _prefetch(tir: Any, buffer: Any, place: Any) -> Any:
    address = tir.address_of(tir.BufferLoad(buffer, [place]))
    how = (_TO_READ, _SECOND_LEVEL, _DATA)
    return tir.Evaluate(tir.call_intrin("int32", "tir.prefetch", address, *how))
