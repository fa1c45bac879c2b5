"""Weights that come from memory while a processor multiplies by those before.

A tuned program reads packed weights block by block, and a block for several rows. While it computes the
first rows the processor waits for memory, and then memory for the processor. Where a share of the next block
is fetched in each iteration over this one, both work all the time. A processor's own prefetcher does not look
that far ahead: it ends at each page of 4 KiB.
"""

from __future__ import annotations

import math
from typing import Any

from tlp_tvm.lowered.dialect import SERIAL, Dialect
from tlp_tvm.lowered.weight_blocks import Block, Read, block_of, reads

LINE = 64
"""Bytes that memory gives at once."""

CACHED = 320 << 10
"""Bytes of a second-level cache, of 512 KiB in small ones, for a block and what is fetched of the next."""

LEAST_AHEAD = 4 << 10
"""Bytes between what is read and what is fetched, about: of short blocks, a later one than the next."""

MOST_LINES = 8
"""Fetched at a time; of more, the last would wait for the first."""


def prefetching(dialect: Dialect) -> Any:
    """The pass, when arrays have one axis, and no loop is a vector.

    Args:
        dialect: words of the TVM.
    """
    return dialect.nodes.transform.prim_func_pass(
        lambda function, _module, _context: with_prefetches(dialect, function),
        opt_level=0,
        name="tlp_tvm.prefetching",
    )


def with_prefetches(dialect: Dialect, function: Any) -> Any:
    """Fetch the next block of packed weights while one is used.

    Args:
        dialect: words of the function.
        function: `PrimFunc`.

    Returns:
        The function, which computes the same; the very object where nothing is fetched.
    """
    nodes, packed = dialect.nodes, dialect.weights_of(function)
    added: dict[Any, list[Any]] = {}
    for read in reads(dialect, function.body, packed) if packed else ():
        block = block_of(dialect, read)
        found = None if block is None else _fetch(dialect, read, block)
        if found is not None:
            added.setdefault(found[0], []).extend(found[1])
    if not added:
        return function

    def changed(loop: Any) -> Any:
        if (statements := added.get(loop.loop_var)) is None:
            return None
        body = nodes.SeqStmt([*statements, loop.body])
        return nodes.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, None, loop.annotations)

    return function.with_body(dialect.fetching(dialect.with_loops(function.body, changed)))


def _fetch(dialect: Dialect, read: Read, block: Block) -> tuple[Any, list[Any]] | None:
    """The variable of a loop, and what fetches a share of a later block in each of its iterations."""
    size = dialect.item_bytes(read.buffer)
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
    zero = dialect.nodes.IntImm("int32", 0)
    later = {outer.loop_var: outer.loop_var + ahead, **{loop.loop_var: zero for loop in inner}}
    start = dialect.substituted(read.index, later) + share * elements
    places = [dialect.simplified(start + line * (LINE // size)) for line in range(lines)]
    return last.loop_var, [_prefetch(dialect, read.buffer, place) for place in places]


def _prefetch(dialect: Dialect, buffer: Any, place: Any) -> Any:
    nodes = dialect.nodes
    address = nodes.address_of(nodes.BufferLoad(buffer, [place]))
    return nodes.Evaluate(dialect.prefetch(address))
