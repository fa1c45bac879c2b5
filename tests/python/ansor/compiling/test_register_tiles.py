"""Tiles of sums for which registers are too few: which, in how many parts, and with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from first_phase import in_the_first_phase
from numpy.typing import NDArray

from tlp_tvm.ansor.compiling import newer_llvm, pass_settings
from tlp_tvm.ansor.compiling.register_tiles import (
    Registers,
    registers_of,
    tile_of,
    with_split_tiles,
    with_whole_steps,
)
from tlp_tvm.ansor.compiling.tir_dialect import TirDialect
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.lowered.dialect import UNROLLED
from tlp_tvm.lowered.weight_blocks import leaves
from tlp_tvm.measuring.code_kinds import IN_PARTS

AVX2, AVX512 = "llvm -mcpu=core-avx2 -num-cores=1", "llvm -mcpu=skylake-avx512 -num-cores=1"
OF_AVX2, OF_AVX512 = Registers(16, 32), Registers(32, 64)
GROUPS, DEPTH = 3, 40

Terms = Callable[[Any, Any, Any, Any, Any, Any], Any]


def products(left: Any, right: Any, group: Any, row: Any, k: Any, column: Any) -> Any:
    """A row of one matrix times a column of the other."""
    return left[group, row, k] * right[k, column]


def product(
    rows: int, columns: int, terms: Terms = products, parallel: bool = True, factor: int = 1
) -> tuple[Any, list[Any]]:
    """Schedule and tensors of a matrix product whose innermost loops are over so many rows and columns.

    A factor splits the rows into two loops.
    """
    te = load_tvm().te
    left, right = te.placeholder((GROUPS, rows, DEPTH)), te.placeholder((DEPTH, columns))
    k = te.reduce_axis((0, DEPTH), name="k")
    sums = te.compute(
        (GROUPS, rows, columns), lambda g, i, j: te.sum(terms(left, right, g, i, k, j), axis=k), name="sums"
    )
    result = te.compute((GROUPS, rows, columns), lambda g, i, j: sums[g, i, j] + 1.0)
    schedule = te.create_schedule(result.op)
    group, _, j = schedule[result].op.axis
    schedule[sums].compute_at(schedule[result], group)
    _, row, column = schedule[sums].op.axis
    outer, inner = schedule[sums].split(row, factor=factor)
    schedule[sums].reorder(k, outer, inner, column)
    schedule[sums].vectorize(column)
    schedule[result].vectorize(j)
    if parallel:
        schedule[result].parallel(group)
    return schedule, [left, right, result]


def parts_of(function: Any, registers: Registers) -> list[int]:
    """Into how many parts each tile is split that is too large."""
    tvm = load_tvm()
    tiles = [tile_of(tvm, loops, leaf, registers) for loops, leaf in leaves(TirDialect(tvm), function.body)]
    return [tile.parts for tile in tiles if tile is not None]


@pytest.mark.parametrize(
    ("rows", "columns", "registers", "parts"),
    [
        (7, 16, OF_AVX2, [2]),
        (3, 32, OF_AVX2, [2]),
        (1, 112, OF_AVX2, []),
        (6, 16, OF_AVX2, []),
        (4, 24, OF_AVX2, []),
        (14, 8, OF_AVX2, []),
        (8, 16, OF_AVX2, []),
        (7, 16, OF_AVX512, []),
        (7, 64, OF_AVX512, [2]),
        (10, 48, OF_AVX512, [3]),
    ],
)
def test_a_tile_is_split_where_its_operands_lack_a_register(
    rows: int, columns: int, registers: Registers, parts: list[int]
) -> None:
    function = in_the_first_phase(*product(rows, columns))

    assert parts_of(function, registers) == parts
    split = with_split_tiles(load_tvm(), function, registers)
    assert split.same_as(function) == (not parts)
    assert parts_of(split, registers) == []


def test_parts_are_of_all_columns_and_their_rows_are_unrolled() -> None:
    tvm = load_tvm()
    split = with_split_tiles(tvm, in_the_first_phase(*product(7, 16)), OF_AVX2)

    found = [
        [int(loop.extent) for loop in loops]
        for loops, _ in leaves(TirDialect(tvm), split.body)
        if any(loop.kind == UNROLLED for loop in loops)
    ]
    assert found == [[GROUPS, DEPTH, 7, 8]] * 2


def elementwise(left: Any, right: Any, group: Any, row: Any, k: Any, column: Any) -> Any:
    """Both factors depend on the column."""
    return left[group, row, column] * right[k, column]


def of_rows(left: Any, right: Any, group: Any, row: Any, k: Any, column: Any) -> Any:
    """Both factors depend on the row."""
    return left[group, row, k] * right[row, column]


def of_both(left: Any, right: Any, group: Any, row: Any, k: Any, column: Any) -> Any:
    """Both factors depend on both."""
    return left[group, row, column] * right[row, column]


def no_products(left: Any, right: Any, group: Any, row: Any, k: Any, column: Any) -> Any:
    """Sums of sums."""
    return left[group, row, k] + right[k, column]


@pytest.mark.parametrize("terms", [elementwise, of_rows, of_both, no_products])
def test_other_sums_are_not_split(terms: Terms) -> None:
    assert parts_of(in_the_first_phase(*product(7, 16, terms)), OF_AVX2) == []


def test_a_tile_with_rows_that_are_not_computed_is_not_split() -> None:
    assert parts_of(in_the_first_phase(*product(15, 32, factor=5)), OF_AVX512) == [2]
    assert parts_of(in_the_first_phase(*product(13, 32, factor=5)), OF_AVX512) == []


def test_without_a_parallel_loop_nothing_is_split() -> None:
    assert parts_of(in_the_first_phase(*product(7, 16, parallel=False)), OF_AVX2) == []


def test_registers_are_known_of_processors_that_add_products() -> None:
    tvm = load_tvm()

    assert registers_of(tvm, tvm.target.Target(AVX2)) == OF_AVX2
    assert registers_of(tvm, tvm.target.Target(AVX512)) == OF_AVX512
    assert registers_of(tvm, tvm.target.Target("llvm -mcpu=nehalem")) is None
    assert registers_of(tvm, tvm.target.Target("cuda")) is None


def results_of(code: str) -> tuple[NDArray[np.float32], str]:
    """What a product gives, and what LLVM makes of it."""
    tvm, random = load_tvm(), np.random.default_rng(0)
    target = tvm.target.Target(AVX2)
    schedule, tensors = product(7, 16)
    with tvm.transform.PassContext(**pass_settings.of_a_program(tvm, target, code)):
        built = tvm.build(schedule, tensors, target=newer_llvm.unoptimised(tvm, target), name="product")
    bitcode = newer_llvm.bitcode_of(built)
    module, _ = newer_llvm.compiled_newly(tvm, bitcode)
    arrays = [random.standard_normal([int(n) for n in each.shape]).astype("float32") for each in tensors]
    given = [tvm.nd.array(each) for each in arrays]
    module["product"](*given)
    return np.asarray(given[-1].numpy()), str(newer_llvm.optimised(bitcode))


def test_a_program_computes_the_same_in_parts() -> None:
    code = newer_llvm.newer_llvm(load_tvm())
    ours, text = results_of(code)
    whole, plain = results_of(code.removesuffix(IN_PARTS))

    np.testing.assert_array_equal(ours, whole)
    assert "llvm.loop.unroll.disable" in text
    assert "llvm.loop.unroll.disable" not in plain


def test_each_row_is_read_once_for_each_part_and_no_step_with_another() -> None:
    _, text = results_of(newer_llvm.newer_llvm(load_tvm()))

    [step] = [block for block in text.split("\n\n") if "= tail call <8 x float>" in block]
    assert step.count("@llvm.fmuladd.v8f32(") == 14
    assert step.count("= load float,") == 14
    assert step.count("= load <8 x float>,") == 2


def test_other_functions_of_llvm_stay_as_they_are() -> None:
    text = "define void @f() {\n  br label %end\n\nend:\n  ret void\n}"

    assert with_whole_steps(text) == text
