"""Addresses whose constant part costs nothing.

TVM says in 32 bits where an element is, and LLVM 10 does not look through the conversion to 64: an unrolled
loop that reads sixteen rows computes sixteen places, with two instructions each. A constant that is added in
64 bits becomes the displacement of the instruction that reads.
"""

from __future__ import annotations

import math
from typing import Any

_MOST_ELEMENTS = 1 << 30
"""Of an array: a place without its constant part still fits in 32 bits."""


def folding_addresses(tvm: Any) -> Any:
    """The pass, for TVM's third phase (`tir.add_lower_pass`), when loops are vectorised and unrolled.

    Args:
        tvm: the module.
    """
    return tvm.tir.transform.prim_func_pass(
        lambda function, _module, _context: with_folded_addresses(tvm.tir, function),
        opt_level=0,
        name="tlp_tvm.folding_addresses",
    )


def with_folded_addresses(tir: Any, function: Any) -> Any:
    """Add the constant parts of all places in 64 bits.

    Args:
        tir: `tvm.tir`.
        function: `tir.PrimFunc`, whose arrays have one axis by now.

    Returns:
        The function, which reads and writes the same.
    """

    def changed(node: Any) -> Any:
        before = list(node.indices)
        if len(before) != 1 or not _is_small(node.buffer):
            return None
        after = _with_wide_constant(tir, before[0])
        if after is before[0]:
            return None
        if isinstance(node, tir.BufferLoad):
            return tir.BufferLoad(node.buffer, [after])
        return tir.BufferStore(node.buffer, node.value, [after])

    places = ["tir.BufferLoad", "tir.BufferStore"]
    return function.with_body(tir.stmt_functor.ir_transform(function.body, None, changed, places))


def _is_small(buffer: Any) -> bool:
    extents = [getattr(extent, "value", _MOST_ELEMENTS) for extent in buffer.shape]
    return math.prod(extents) < _MOST_ELEMENTS


def _with_wide_constant(tir: Any, place: Any) -> Any:
    """The same place; the very object where there is nothing to gain."""
    if isinstance(place, tir.Ramp):
        base = _with_wide_constant(tir, place.base)
        if base is place.base or not isinstance(place.stride, tir.IntImm):
            return place
        return tir.Ramp(base, tir.IntImm("int64", place.stride.value), place.lanes)
    if place.dtype != "int32":
        return place
    rest, constant = _apart(tir, place)
    if rest is None or not constant:
        return place
    return tir.Add(tir.Cast("int64", rest), tir.IntImm("int64", constant))


def _apart(tir: Any, place: Any) -> tuple[Any | None, int]:
    """What varies, None where nothing does, and the constant that is added to it."""
    if isinstance(place, tir.IntImm):
        return None, int(place.value)
    if isinstance(place, (tir.Add, tir.Sub)):
        (a, more_a), (b, more_b) = _apart(tir, place.a), _apart(tir, place.b)
        if not more_a and not more_b:
            return place, 0
        if isinstance(place, tir.Sub):
            rest = a if b is None else tir.Sub(tir.IntImm("int32", 0) if a is None else a, b)
            return rest, more_a - more_b
        rest = b if a is None else a if b is None else tir.Add(a, b)
        return rest, more_a + more_b
    if isinstance(place, tir.Mul) and isinstance(place.b, tir.IntImm):
        rest, constant = _apart(tir, place.a)
        if constant:
            return None if rest is None else tir.Mul(rest, place.b), constant * int(place.b.value)
    return place, 0
