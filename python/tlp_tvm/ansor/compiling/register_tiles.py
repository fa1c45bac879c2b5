"""Sums of a product that stay in registers, where one register too few is left for its operands.

A tile of 7 x 16 sums, as images of 7, 14, 28 and 56 pixels have it, takes fourteen of AVX2's sixteen
registers, and its operands three. LLVM then keeps a sum or two in memory, and where it is unlucky each step
waits until the last one has been written and read again. Half of the columns after the other half needs a
register less, and reads the rows' operand twice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tlp_tvm.ansor.compiling.tir_dialect import TirDialect
from tlp_tvm.lowered.dialect import PARALLEL, SERIAL, UNROLLED, VECTORISED
from tlp_tvm.lowered.weight_blocks import leaves, steps_of

_KNOWN = (("avx512f", 32, 64), ("avx2", 16, 32))
"""Extensions, the widest first, their registers and the bytes of each."""

_PRODUCTS = "fma"
"""The extension that adds a product to a sum in one step; without, a product takes a register too."""

_MARK = "llvm.bswap"
"""What reverses the bytes of a number: neither TVM nor LLVM says what becomes of an iteration's."""

_SIGN = 128
"""Of a number, once its bytes are reversed: 0 of the iterations of a loop."""

_JUMP = "  br label %"
"""Starts the last line of a block that has one successor: of a loop's last one, its first."""

_ONE_STEP, _FIRST_NODE = '!{!"llvm.loop.unroll.disable"}', 1_000_000
"""What LLVM's language says of a loop whose steps stay apart, and a number that no node of a module has."""


class Registers(NamedTuple):
    """What a processor has for vectors.

    Attributes:
        number: of registers.
        bytes: of each.
    """

    number: int
    bytes: int


class Tile(NamedTuple):
    """The innermost loops of a product, over sums that each step of the loop around them adds to.

    Attributes:
        parallel: the loop around all.
        loops: over the sums, the vectorised one last.
        store: of a sum.
        parts: in which columns are to be computed.
    """

    parallel: Any
    loops: tuple[Any, ...]
    store: Any
    parts: int


def registers_of(tvm: Any, target: Any) -> Registers | None:
    """The registers that programs for a target use.

    Args:
        tvm: the module.
        target: `tvm.target.Target`.

    Returns:
        None where they are not known, as of a GPU.
    """
    features_of = getattr(tvm.target.codegen, "llvm_get_cpu_features", None)  # not in older TVMs
    if target.kind.name != "llvm" or features_of is None:
        return None
    features = {str(feature) for feature in features_of(target)}
    found = (Registers(number, size) for name, number, size in _KNOWN if {name, _PRODUCTS} <= features)
    return next(found, None)


def splitting_tiles(tvm: Any, registers: Registers) -> Any:
    """The pass, for TVM's first phase (`tir.add_lower_pass`), when arrays have one axis and loops are loops.

    Args:
        tvm: the module.
        registers: of the processor.
    """
    return tvm.tir.transform.prim_func_pass(
        lambda function, _module, _context: with_split_tiles(tvm, function, registers),
        opt_level=0,
        name="tlp_tvm.splitting_tiles",
    )


def with_split_tiles(tvm: Any, function: Any, registers: Registers) -> Any:
    """Compute tiles in parts whose sums and operands have a register each.

    Args:
        tvm: the module.
        function: `tir.PrimFunc`.
        registers: of the processor.

    Returns:
        The function, which computes the same, bit for bit; the very object where no tile is too large.
    """
    dialect = TirDialect(tvm)
    found = (tile_of(tvm, *each, registers) for each in leaves(dialect, function.body))
    tiles = {tile.loops[0].loop_var: tile for tile in found if tile is not None}
    if not tiles:
        return function

    def changed(loop: Any) -> Any:
        tile = tiles.get(loop.loop_var)
        if tile is None:
            return None
        return tvm.tir.SeqStmt([_part(dialect, tile, part) for part in range(tile.parts)])

    return function.with_body(dialect.with_loops(function.body, changed))


def tile_of(tvm: Any, loops: tuple[Any, ...], statement: Any, registers: Registers) -> Tile | None:
    """The tile that a statement is the innermost of, if it has to be computed in parts.

    Args:
        tvm: the module.
        loops: around the statement, the outermost first.
        statement: of a function.
        registers: of the processor.
    """
    tir, dialect = tvm.tir, TirDialect(tvm)
    if not loops or loops[0].kind != PARALLEL or loops[-1].kind != VECTORISED or not _adds(tir, statement):
        return None
    steps = steps_of(dialect, loops, statement.indices[0])
    if steps is None or steps[-1] != 1 or 0 not in steps:
        return None
    depth = len(steps) - steps[::-1].index(0)
    *rows, columns = tile = loops[depth:]
    whole = all(outer.body.same_as(inner) for outer, inner in itertools.pairwise([*tile, statement]))
    if (
        loops[depth - 1].kind != SERIAL
        or not whole
        or not _is_of_rows_and_columns(dialect, statement, rows, columns)
    ):
        return None
    vectors, rest = divmod(int(columns.extent) * dialect.item_bytes(statement.buffer), registers.bytes)
    sums = vectors * math.prod(int(loop.extent) for loop in rows)
    if rest or sums + vectors + 1 <= registers.number:
        return None
    fitting = (
        n for n in range(2, vectors + 1) if not vectors % n and sums + vectors // n + 1 <= registers.number
    )
    parts = next(fitting, None)
    return None if parts is None else Tile(loops[0], tile, statement, parts)


def with_whole_steps(text: str) -> str:
    """Keep LLVM from computing two steps of a loop around parts of a tile at a time.

    It would mix their instructions, and lack registers for both.

    Args:
        text: of functions, in LLVM's language, before any of its passes.
    """
    if f"@{_MARK}" not in text:
        return text
    lines, marked, number = text.splitlines(), False, 0
    for i, line in enumerate(lines):
        if line and not line[0].isspace():
            marked = False
        elif f"@{_MARK}" in line:
            marked = True
        elif marked and line.startswith(_JUMP):
            lines[i], number = f"{line}, !llvm.loop !{_FIRST_NODE + number}", number + 1
    lines += [f"!{_FIRST_NODE + i} = distinct !{{!{_FIRST_NODE + i}, {_ONE_STEP}}}" for i in range(number)]
    return "\n".join(lines)


def _adds(tir: Any, statement: Any) -> bool:
    """Whether a product is added to what the statement writes."""
    if not isinstance(statement, tir.BufferStore) or len(statement.indices) != 1:
        return False
    value = statement.value
    return (
        isinstance(value, tir.Add)
        and isinstance(value.a, tir.BufferLoad)
        and isinstance(value.b, tir.Mul)
        and value.a.buffer.same_as(statement.buffer)
    )


def _is_of_rows_and_columns(dialect: TirDialect, statement: Any, rows: Sequence[Any], columns: Any) -> bool:
    """Whether one factor is the same in all columns, and the other in all rows."""
    of_rows, of_columns = [], []
    for factor in (statement.value.b.a, statement.value.b.b):
        variables = dialect.variables_in(factor)
        of_columns.append(any(each.same_as(columns.loop_var) for each in variables))
        of_rows.append(any(each.same_as(loop.loop_var) for loop in rows for each in variables))
    return of_columns[0] != of_columns[1] and of_rows == of_columns[::-1]


def _part(dialect: TirDialect, tile: Tile, part: int) -> Any:
    """The loops over some of the columns."""
    tir = dialect.nodes
    new = {loop.loop_var: tir.Var(loop.loop_var.name, loop.loop_var.dtype) for loop in tile.loops}
    columns = tile.loops[-1]
    width = int(columns.extent) // tile.parts
    moved = {**new, columns.loop_var: new[columns.loop_var] + part * width}
    body = dialect.substituted(tile.store, moved)
    if part:
        body = _read_again(dialect, body, new[columns.loop_var], tile.parallel.loop_var)
    for loop in reversed(tile.loops):
        extent, kind = (width, VECTORISED) if loop is columns else (loop.extent, UNROLLED)
        body = tir.For(new[loop.loop_var], loop.min, extent, kind, body, None, loop.annotations)
    return body


def _read_again(dialect: TirDialect, store: Any, column: Any, parallel: Any) -> Any:
    """Read what is the same in all columns at a place of which LLVM does not know that it is the same.

    It would keep what it has read for the columns before.
    """
    tir = dialect.nodes
    reversed_bytes = tir.call_llvm_pure_intrin("int32", _MARK, tir.const(1, "uint32"), parallel)
    nothing = tir.bitwise_and(reversed_bytes, _SIGN)

    def changed(load: Any) -> Any:
        if any(each.same_as(column) for each in dialect.variables_in(load)):
            return None
        return tir.BufferLoad(load.buffer, [load.indices[0] + nothing])

    return tir.stmt_functor.ir_transform(store, None, changed, ["tir.BufferLoad"])
