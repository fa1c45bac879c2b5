"""exp, erf, tanh and powers as what is compiled here computes them, beside the same in double precision."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tlp_tvm.measuring.code_kinds import PLAIN
from tlp_tvm.metaschedule.compiling.building import CODE
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.polynomials import ERROR
from tlp_tvm.metaschedule.loading.targets import target_of

TRUE = {"exp": np.exp, "erf": np.vectorize(math.erf), "tanh": np.tanh}
ENDS = np.array([-np.inf, np.inf, np.nan, 0.0, -0.0, -3.4e38, 3.4e38, 1e-30], np.float32)


def computed(function: str, x: NDArray[Any], lanes: int, *further: float) -> NDArray[Any]:
    """A function of all numbers of an array, and of further ones that are fixed, compiled for this CPU."""
    tvm = load_tvm()
    from tvm import te, tirx
    from tvm.s_tir import Schedule

    fixed = [tirx.const(each, str(x.dtype)) for each in further]
    given = te.placeholder(x.shape, str(x.dtype), "x")
    result = te.compute(x.shape, lambda i: getattr(te, function)(given[i], *fixed))
    schedule = Schedule(te.create_prim_func([given, result]))
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    if lanes > 1:
        schedule.vectorize(schedule.split(*schedule.get_loops(block), [None, lanes])[1])
    arrays = [tvm.runtime.tensor(each) for each in (x, np.zeros_like(x))]
    tvm.compile(schedule.mod, target=target_of(""))(*arrays)
    return np.asarray(arrays[1].numpy())


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("function", list(TRUE))
def test_float32_is_within_the_bound_everywhere(function: str, lanes: int) -> None:
    tiny = np.logspace(-30, -1, 400)
    x = np.concatenate([np.linspace(-87, 87, 80_000), np.linspace(-9, 9, 80_000), tiny, -tiny]).astype(
        np.float32
    )
    true = TRUE[function](x.astype(np.float64))
    error = np.abs(computed(function, x, lanes) - true) / (true if function == "exp" else 1)
    assert error.max() < ERROR
    assert error.max() > ERROR / 20, "the bound could be tighter, or a libm computes"

    with np.errstate(over="ignore"):
        found, expected = computed(function, ENDS, lanes), TRUE[function](ENDS.astype(np.float64))
    np.testing.assert_allclose(found, np.float32(expected), rtol=1e-6)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("function", list(TRUE))
def test_other_types_keep_the_rules_of_tvm(function: str, lanes: int) -> None:
    x = np.linspace(-5, 5, 1000)
    np.testing.assert_allclose(computed(function, x, lanes), TRUE[function](x), rtol=1e-14)


@pytest.mark.parametrize("function", [*TRUE, "sigmoid"])
def test_numbers_of_a_vectorised_loop_are_computed_together(function: str) -> None:
    tvm = load_tvm()
    from tvm import te
    from tvm.s_tir import Schedule

    given = te.placeholder((1024,), "float32", "x")
    result = te.compute((1024,), lambda i: getattr(te, function)(given[i]))
    schedule = Schedule(te.create_prim_func([given, result]))
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    schedule.vectorize(schedule.split(*schedule.get_loops(block), [None, 8])[1])

    blocks, loops = tvm.s_tir.transform, tvm.tirx.transform
    mod = tvm.tirx.transform.BindTarget(target_of("").with_host(target_of("")))(schedule.mod)
    for step in (blocks.ConvertBlocksToOpaque, blocks.LowerOpaqueBlock, loops.FlattenBuffer):
        mod = step()(mod)
    assert mod.script().count("for ") == 2
    assert loops.VectorizeLoop()(mod).script().count("for ") == 1


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(
    ("exponent", "ours"), [(2.0, True), (3.0, True), (7.0, True), (8.0, True), (0.5, False)]
)
def test_whole_powers_are_within_the_bound(exponent: float, ours: bool, lanes: int) -> None:
    x = np.concatenate([np.linspace(-9, 9, 80_000), np.logspace(-4, 4, 400)]).astype(np.float32)
    x = x if ours else np.abs(x)
    true = x.astype(np.float64) ** exponent
    error = np.abs(computed("power", x, lanes, exponent) - true) / np.maximum(np.abs(true), 1e-30)
    assert error.max() < ERROR

    ends = ENDS if ours else np.abs(ENDS)
    with np.errstate(over="ignore", invalid="ignore"):
        found, expected = computed("power", ends, lanes, exponent), np.float64(ends) ** exponent
        np.testing.assert_allclose(found, np.float32(expected), rtol=1e-6)


_IN_A_CHILD = """
import sys
import tvm
from tvm import te
from tlp_tvm.metaschedule.measuring import work

given = te.placeholder((64,), "float32", "x")
module = tvm.IRModule({"main": te.create_prim_func([given, te.compute((64,), lambda i: te.erf(given[i]))])})
target = '{"kind": "llvm", "mcpu": "core-avx2", "num-cores": 1}'
sent = work.Serialized(tvm.ir.save_json(module), target, (((64,), "float32"),) * 2, code=sys.argv[1])
assert work.build(0, sent).error == 0
print("@erff" in work._programs[0].module.inspect_source("ll"))
"""


@pytest.mark.parametrize(("code", "calls"), [(CODE, "False"), (PLAIN, "True")])
def test_a_measured_program_computes_as_the_network_will(code: str, calls: str) -> None:
    command = [sys.executable, "-c", _IN_A_CHILD, code]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip() == calls, ended.stderr
