"""The weights that a program needs next are fetched: which, when, and with the same results."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from first_phase import in_the_first_phase
from numpy.typing import NDArray

from tlp_tvm.ansor.compiling import newer_llvm, pass_settings
from tlp_tvm.ansor.compiling.tir_dialect import MOST_AXES, TirDialect
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.lowered import prefetching, weight_blocks
from tlp_tvm.lowered.prefetching import LINE, with_prefetches
from tlp_tvm.lowered.weight_blocks import Block, Read, block_of, leaves, reads
from tlp_tvm.measuring.code_kinds import FOLDED, IN_PARTS, PLAIN, PREFETCHING

TARGET = "llvm -mcpu=core-avx2 -num-cores=1"
ROWS, DEPTH, COLUMNS, LANES = 8, 96, 5, 16
BLOCK = DEPTH * LANES
"""Elements of the weights of sixteen columns."""


def dialect() -> TirDialect:
    return TirDialect(load_tvm())


@pytest.fixture(autouse=True)
def small_weights_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of these products are small."""
    monkeypatch.setattr(weight_blocks, "LEAST_BYTES", 4 * COLUMNS * BLOCK)


def product(fused: bool = False, axes: int = 6) -> tuple[Any, list[Any]]:
    """Schedule and tensors of a product, whose packed weights have so many axes.

    Two groups of rows need the same weights, one after the other: two iterations of the parallel loop if they
    are `fused` into it.
    """
    te = load_tvm().te
    left = te.placeholder((ROWS, DEPTH), name="left")
    weights = te.placeholder((COLUMNS, *[1] * (axes - 3), DEPTH, LANES), name="weights")
    k = te.reduce_axis((0, DEPTH), name="k")
    ones = [0] * (axes - 3)
    result = te.compute(
        (COLUMNS, ROWS, LANES), lambda j, i, v: te.sum(left[i, k] * weights[(j, *ones, k, v)], axis=k)
    )
    schedule = te.create_schedule(result.op)
    stage = schedule[result]
    j, i, v = stage.op.axis
    group, row = stage.split(i, factor=4)
    k_outer, k_inner = stage.split(k, factor=8)
    stage.reorder(j, group, k_outer, k_inner, row, v)
    stage.parallel(stage.fuse(j, group) if fused else j)
    stage.vectorize(v)
    return schedule, [left, weights, result]


def weights_read(function: Any) -> Read:
    """Where a product reads its weights."""
    [weights] = [each.data for each in function.buffer_map.values() if each.name == "weights"]
    [read] = reads(dialect(), function.body, {weights})
    return read


def fetched(function: Any) -> list[tuple[tuple[int, ...], int]]:
    """For each prefetch that runs, the iterations of the loops around it and the element that it asks for."""
    tvm = load_tvm()
    tir, found = tvm.tir, []
    for loops, statement in leaves(dialect(), function.body):
        if isinstance(statement, tir.Evaluate) and "prefetch" in str(statement):
            [place] = statement.value.args[0].args[0].indices
            for values in itertools.product(*(range(int(each.extent)) for each in loops)):
                given = {loop.loop_var: value for loop, value in zip(loops, values, strict=True)}
                value = tir.stmt_functor.substitute(place, given)
                found.append((values, int(tvm.arith.Analyzer().simplify(value))))
    return found


@pytest.mark.parametrize(("fused", "same"), [(False, 1), (True, 2)])
def test_while_a_block_is_used_each_line_of_the_next_is_fetched(fused: bool, same: int) -> None:
    function = in_the_first_phase(*product(fused))

    assert block_of(dialect(), weights_read(function)) == Block(0, 4 * BLOCK, same)
    found = fetched(with_prefetches(dialect(), function))
    for block in range(COLUMNS):
        lines = {4 * place // LINE for values, place in found if values[0] // same == block}
        assert lines == set(range((block + 1) * 4 * BLOCK // LINE, (block + 2) * 4 * BLOCK // LINE))
    assert len(found) < 2 * COLUMNS * 4 * BLOCK / LINE


def test_a_block_that_is_too_large_is_fetched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_blocks, "MOST_BYTES", 1 << 10)
    function = in_the_first_phase(*product())

    part = block_of(dialect(), weights_read(function))

    assert part == Block(2, 4 * 8 * LANES)
    ahead = math.ceil(prefetching.LEAST_AHEAD / part.bytes)
    for (column, _, k, *more), place in fetched(with_prefetches(dialect(), function)):
        first = column * BLOCK + (k + ahead) * 8 * LANES
        assert not more or more[0] < 8
        assert first <= place < first + 8 * LANES


def test_arrays_of_a_network_and_small_ones_are_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    function = in_the_first_phase(*product(axes=MOST_AXES))
    assert with_prefetches(dialect(), function).same_as(function)

    monkeypatch.setattr(weight_blocks, "LEAST_BYTES", 4 * COLUMNS * BLOCK + 1)
    function = in_the_first_phase(*product())
    assert with_prefetches(dialect(), function).same_as(function)


def test_what_is_used_once_or_lies_apart_is_not_fetched() -> None:
    tvm = load_tvm()
    loops, buffer, index = weights_read(in_the_first_phase(*product()))
    moved = tuple(loop for loop in loops if loop.kind or int(loop.extent) in (DEPTH // 8, 8))

    assert block_of(dialect(), Read(loops, buffer, index)) is not None
    assert block_of(dialect(), Read(moved, buffer, index)) is None
    assert block_of(dialect(), Read(loops, buffer, index * 2)) is None
    assert block_of(dialect(), Read(loops, buffer, index * index)) is None
    assert block_of(dialect(), Read(loops, buffer, tvm.tir.IntImm("int32", 7))) is None


def results_of(code: str, fused: bool) -> tuple[NDArray[np.float32], str]:
    """What a product gives, and LLVM's language of it, as TVM writes it."""
    tvm, random = load_tvm(), np.random.default_rng(0)
    schedule, tensors = product(fused)
    with tvm.transform.PassContext(**pass_settings.of_a_program(tvm, tvm.target.Target(TARGET), code)):
        target = newer_llvm.unoptimised(tvm, tvm.target.Target(TARGET))
        built = tvm.build(schedule, tensors, target=target, name="product")
    module, _ = newer_llvm.compiled_newly(tvm, newer_llvm.bitcode_of(built))
    arrays = [random.standard_normal([int(n) for n in each.shape]).astype("float32") for each in tensors]
    given = [tvm.nd.array(each) for each in arrays]
    module["product"](*given)
    return np.asarray(given[-1].numpy()), str(built.get_source())


@pytest.mark.parametrize("fused", [False, True])
def test_a_program_computes_the_same(fused: bool) -> None:
    code = newer_llvm.newer_llvm(load_tvm())
    ours, text = results_of(code, fused)
    without, plain = results_of(code.removesuffix(PREFETCHING + IN_PARTS), fused)

    np.testing.assert_array_equal(ours, without)
    assert "llvm.prefetch" in text
    assert "llvm.prefetch" not in plain


def test_sums_stay_in_registers_beside_a_prefetch() -> None:
    from llvmlite import binding

    _, text = results_of(newer_llvm.newer_llvm(load_tvm()), fused=False)
    optimised = str(newer_llvm.optimised(binding.parse_assembly(text).as_bitcode()))

    storing = {block.partition(":")[0] for block in optimised.split("\n\n") if "store <16 x float>" in block}
    assert "call void @llvm.prefetch" in optimised
    # some processors have the groups of rows unrolled
    assert {name.removesuffix(".1") for name in storing} == {"for_end_k.outer"}


def test_only_a_newer_llvm_for_a_cpu_fetches() -> None:
    tvm, ours = load_tvm(), newer_llvm.newer_llvm(load_tvm())

    def passes(target: str, code: str) -> list[str]:
        found = pass_settings.of_a_program(tvm, tvm.target.Target(target), code)
        added = found["config"].get("tir.add_lower_pass", [])
        return [str(each.info.name) for _, each in added]

    assert passes(TARGET, ours) == ["tlp_tvm.prefetching", "tlp_tvm.splitting_tiles"]
    assert passes("llvm -mcpu=nehalem", ours) == ["tlp_tvm.prefetching"]
    assert passes(TARGET, ours.removesuffix(IN_PARTS)) == ["tlp_tvm.prefetching"]
    assert passes(TARGET, ours.removesuffix(PREFETCHING + IN_PARTS)) == []
    assert passes(TARGET, FOLDED) == ["tlp_tvm.folding_addresses"]
    assert passes(TARGET, PLAIN) == passes("cuda", ours) == []
