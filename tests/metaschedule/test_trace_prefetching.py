"""The weights that a program of MetaSchedule's needs next are fetched, with the same results."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from tlp_tvm.lowered import weight_blocks
from tlp_tvm.measuring.code_kinds import PLAIN
from tlp_tvm.metaschedule.compiling.building import CODE, way
from tlp_tvm.metaschedule.compiling.tirx_dialect import TirxDialect
from tlp_tvm.metaschedule.graph.fusing import WEIGHTS
from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import target_of
from tlp_tvm.metaschedule.networks.builtin import relax_of, tasks_of
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.search.tvms_sample import drawn, ready_search

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"
ROWS, DEPTH, BLOCKS, LANES = 8, 96, 5, 16
BLOCK = DEPTH * LANES
"""Elements of the weights of sixteen columns."""


@pytest.fixture(autouse=True)
def small_weights_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of these products are small."""
    monkeypatch.setattr(weight_blocks, "LEAST_BYTES", 4 * BLOCKS * BLOCK)


def product(*, weights: bool = True) -> Any:
    """A scheduled product whose packed weights are read block by block, for two groups of four rows each."""
    load_tvm()
    from tvm import te
    from tvm.s_tir import Schedule

    left = te.placeholder((ROWS, DEPTH), name="left")
    packed = te.placeholder((BLOCKS, DEPTH, LANES), name="packed")
    k = te.reduce_axis((0, DEPTH), name="k")
    result = te.compute(
        (BLOCKS, ROWS, LANES), lambda j, i, v: te.sum(left[i, k] * packed[j, k, v], axis=k), name="sums"
    )
    function = te.create_prim_func([left, packed, result])
    if weights:
        function = function.with_attr(WEIGHTS, [1])
    schedule = Schedule(function)
    block = schedule.get_sblock("sums")
    j, i, v, k = schedule.get_loops(block)
    group, row = schedule.split(i, [None, 4])
    outer, inner = schedule.split(k, [None, 8])
    schedule.reorder(j, group, outer, inner, row, v)
    schedule.parallel(j)
    schedule.vectorize(v)
    schedule.decompose_reduction(block, outer)
    return schedule.mod


def built(module: Any, code: str) -> Any:
    tvm, target = load_tvm(), target_of(TARGET, here=False)
    return tvm.tirx.build(module, target=target, pipeline=way(tvm, target, code))


def results_of(module: Any) -> np.ndarray:
    tvm, random = load_tvm(), np.random.default_rng(0)
    shapes = ((ROWS, DEPTH), (BLOCKS, DEPTH, LANES), (BLOCKS, ROWS, LANES))
    given = [tvm.runtime.tensor(random.standard_normal(shape).astype(np.float32)) for shape in shapes]
    module["main"](*given)
    return np.asarray(given[-1].numpy())


def text_of(code: str) -> str:
    """A program in LLVM's language, without TVM's names for where its arrays are."""
    return re.sub(r"0x[0-9a-f]+", "", built(product(), code).inspect_source("ll"))


def test_a_program_computes_the_same_and_fetches() -> None:
    ours, plain = built(product(), CODE), built(product(), PLAIN)

    np.testing.assert_array_equal(results_of(ours), results_of(plain))
    assert "prefetch" in ours.inspect_source("asm")
    assert "prefetch" not in plain.inspect_source("asm")


def test_only_weights_are_fetched_and_only_for_a_cpu() -> None:
    tvm = load_tvm()

    assert "prefetch" not in built(product(weights=False), CODE).inspect_source("asm")
    assert way(tvm, target_of("cuda -arch=sm_80", here=False), CODE) == way(tvm, target_of(TARGET), PLAIN)


def test_sums_stay_in_registers_beside_a_prefetch() -> None:
    text = built(product(), CODE).inspect_source("ll")

    calls = re.findall(r"call void @llvm\.prefetch[^\n]*#(\d+)", text)
    assert calls
    for number in calls:
        assert re.search(rf"attributes #{number} = {{[^\n]*memory\(inaccessiblemem: readwrite\)", text)


def test_what_comes_before_ours_changes_nothing_when_it_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_blocks, "LEAST_BYTES", 1 << 40)

    assert text_of(CODE) == text_of(PLAIN)


@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch warns of itself
def test_programs_of_convolutions_compile() -> None:
    load_tvm()
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    network, image = torch.nn.Conv2d(64, 128, 3, stride=2, padding=1).eval(), torch.randn(1, 64, 56, 56)
    target = target_of(TARGET)
    tasks = tasks_of(prepared(*relax_of(torch.export.export(network, (image,)))), target)
    (task,) = [TraceTask(task) for task in tasks if "conv2d" in str(task.task_name)]

    for program in drawn(ready_search(task, 1, 24), 24):
        built(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(program.mod), CODE)


def test_arrays_are_known_by_what_they_are_views_of() -> None:
    tvm = load_tvm()
    lowered: list[Any] = []

    def seen(function: Any, *_: Any) -> Any:
        lowered.append(function)
        return function

    loops, blocks = tvm.tirx.transform, tvm.s_tir.transform
    passes = [blocks.LowerInitBlock(), blocks.ConvertBlocksToOpaque(), blocks.LowerOpaqueBlock()]
    passes += [loops.FlattenBuffer(), loops.prim_func_pass(seen, opt_level=0)]
    tvm.transform.Sequential(passes)(product())

    dialect = TirxDialect(tvm)
    (read,) = weight_blocks.reads(dialect, lowered[0].body, dialect.weights_of(lowered[0]))
    assert weight_blocks.block_of(dialect, read) == weight_blocks.Block(0, 4 * BLOCK, 1)
