"""Where the constant parts of addresses go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tlp_tvm.ansor.compiling.addresses import with_folded_addresses
from tlp_tvm.ansor.loading.locate import load_tvm

LANES = 8


def place_after(place: Callable[[Any, Any], Any], elements: int = 4096) -> Any:
    """Of a read, whose place is given the modules `tir` and a variable."""
    tir = load_tvm().tir
    i = tir.Var("i", "int32")
    numbers = tir.decl_buffer((elements,), "float32", name="numbers")
    loaded = tir.BufferLoad(numbers, [place(tir, i)])
    body = tir.For(i, 0, 16, tir.ForKind.SERIAL, tir.Evaluate(loaded))
    function = with_folded_addresses(tir, tir.PrimFunc([numbers.data], body))
    return function.body.body.value.indices[0]


def expected(variable: Any, constant: int) -> Any:
    tir = load_tvm().tir
    return tir.Add(tir.Cast("int64", variable), tir.IntImm("int64", constant))


@pytest.mark.parametrize(
    ("place", "variable", "constant"),
    [
        (lambda tir, i: tir.Add(i, tir.IntImm("int32", 3)), lambda tir, i: i, 3),
        (lambda tir, i: tir.Sub(i, tir.IntImm("int32", 3)), lambda tir, i: i, -3),
        (
            lambda tir, i: tir.Mul(tir.Add(i, tir.IntImm("int32", 3)), tir.IntImm("int32", 5)),
            lambda tir, i: tir.Mul(i, tir.IntImm("int32", 5)),
            15,
        ),
        (
            lambda tir, i: tir.Add(tir.Add(tir.IntImm("int32", 7), i), tir.Add(i, tir.IntImm("int32", 4))),
            lambda tir, i: tir.Add(i, i),
            11,
        ),
        (
            lambda tir, i: tir.Sub(tir.IntImm("int32", 9), i),
            lambda tir, i: tir.Sub(tir.IntImm("int32", 0), i),
            9,
        ),
    ],
)
def test_the_constant_part_is_added_in_64_bits(
    place: Callable[[Any, Any], Any], variable: Callable[[Any, Any], Any], constant: int
) -> None:
    tvm = load_tvm()
    found = place_after(place)

    i = tvm.tir.Var("i", "int32")
    assert tvm.ir.structural_equal(found, expected(variable(tvm.tir, i), constant), map_free_vars=True)


def test_a_vector_starts_at_such_a_place() -> None:
    tvm = load_tvm()
    tir = tvm.tir
    found = place_after(
        lambda tir, i: tir.Ramp(tir.Add(i, tir.IntImm("int32", 3)), tir.IntImm("int32", 1), LANES)
    )

    assert str(found.dtype) == f"int64x{LANES}"
    assert tvm.ir.structural_equal(found.base, expected(tir.Var("i", "int32"), 3), map_free_vars=True)


@pytest.mark.parametrize(
    "place",
    [
        lambda tir, i: i,
        lambda tir, i: tir.IntImm("int32", 3),
        lambda tir, i: tir.Mul(i, tir.IntImm("int32", 3)),
        lambda tir, i: tir.FloorDiv(tir.Add(i, tir.IntImm("int32", 3)), tir.IntImm("int32", 2)),
        lambda tir, i: tir.Ramp(i, tir.IntImm("int32", 2), LANES),
    ],
)
def test_a_place_without_one_stays(place: Callable[[Any, Any], Any]) -> None:
    assert str(place_after(place).dtype).startswith("int32")


def test_a_place_in_a_huge_array_stays() -> None:
    """Without its constant part, it could be out of the range of 32 bits."""
    assert str(place_after(lambda tir, i: tir.Add(i, tir.IntImm("int32", 3)), 1 << 30).dtype) == "int32"
