"""Weights that come from memory while a processor multiplies by those before.

A tuned program reads packed weights block by block, and a block for several rows. While it computes the
first rows the processor waits for memory, and then memory for the processor. Where a share of the next block
is fetched in each iteration over this one, both work all the time. A processor's own prefetcher does not look
that far ahead: it ends at each page of 4 KiB.
"""

from __future__ import annotations

import math
from typing import Any

from tlp_tvm.ansor.compiling.weight_blocks import SERIAL, Block, Read, block_of, item_bytes, reads

LINE = 64
"""Bytes that memory gives at once."""

CACHED = 320 << 10
"""Bytes of a second-level cache, of 512 KiB in small ones, for a block and what is fetched of the next."""

LEAST_AHEAD = 4 << 10
"""Bytes between what is read and what is fetched, about: of short blocks, a later one than the next."""

MOST_LINES = 8
"""Fetched at a time; of more, the last would wait for the first."""

MOST_AXES = 5
"""Of an array in a network. One with more is of weights that are packed for the program."""

_SECOND_LEVEL, _DATA, _TO_READ = 2, 1, 0
"""LLVM's words for the cache that a line is fetched to, and for what."""


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


def _fetch(tvm: Any, read: Read, block: Block) -> tuple[Any, list[Any]] | None:
    """The variable of a loop, and what fetches a share of a later block in each of its iterations."""
    tir, size = tvm.tir, item_bytes(tvm, read.buffer)
    outer, *inner = read.loops[block.depth :]
    fetched = min(block.bytes, CACHED - block.bytes)
    last, shares, share = outer, block.same, outer.loop_var % block.same
    for loop in inner[:-1]:
        often = shares * int(loop.extent) * LINE >= fetched + LINE
        if loop.kind != SERIAL or (often and fetched <= shares * LINE * MOST_LINES):
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
