"""Bred programs are programs: TVM replays them, and sees what was bred."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tlp_tvm import _core
from tlp_tvm.ansor.breeding.task_stock import GROWTHS, TaskStock
from tlp_tvm.ansor.networks.tasks import OPERATORS, operator_task
from tlp_tvm.ansor.reading.gpu_check import GpuCheck
from tlp_tvm.ansor.reading.states import extract_states
from tlp_tvm.breeding.herd_scores import embedded
from tlp_tvm.errors import RecordError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import load_model

CPU = "llvm -mcpu=core-avx2 -num-cores=2"
CUDA = "cuda -arch=sm_70"
NONE = np.empty(0, np.uint64)


def bred(stock: TaskStock, count: int, *, gpu: bool = False, **how: Any) -> _core.Herd:
    """Children of children of the sample."""
    herd = stock.sample
    for generation in range(2):
        options = {"count": count, "seed": generation, "known": NONE, "threads": 0, **how}
        rules = stock.gpu if gpu else None
        herd, _ = stock.stock.breed(herd, np.ones(len(herd)), stock.plan, gpu=rules, **options)
    return herd


@pytest.mark.parametrize("target", [CPU, CUDA])
@pytest.mark.parametrize("name", list(OPERATORS))
def test_tvm_replays_what_was_bred(name: str, target: str) -> None:
    task = operator_task(name, target)
    stock = TaskStock(task, seed=1, sampled=32)
    herd = bred(stock, 40)
    found = stock.replayer.programs(herd, range(len(herd)), len(herd))  # which compares the steps
    assert len(found) == len(herd) >= 8
    assert (stock.replayer.counts.replayed, stock.replayer.counts.failed) == (len(herd), {})
    layout = FeatureLayout.preset("ansor")
    states = [state for _, state in found]
    np.testing.assert_array_equal(embedded(herd, layout), extract_states(states, layout))
    if stock.gpu is not None:
        np.testing.assert_array_equal(stock.gpu.faults(herd), GpuCheck(task).faults(states))


def test_programs_that_a_gpu_cannot_run_are_not_bred() -> None:
    stock = TaskStock(operator_task("dense", CUDA), seed=1, sampled=32)
    assert stock.gpu is not None
    assert stock.gpu.faults(bred(stock, 200)).any()
    assert not stock.gpu.faults(bred(stock, 200, gpu=True)).any()


def test_threads_and_the_way_of_reading_make_no_difference() -> None:
    stock = TaskStock(operator_task("conv2d", CPU), seed=1, sampled=32)
    herds = [bred(stock, 300, threads=threads) for threads in (1, 4, 7)]
    for herd in herds[1:]:
        np.testing.assert_array_equal(herd.hashes, herds[0].hashes)
    assert len(set(herds[0].hashes.tolist())) == len(herds[0]) > 200
    lines = "".join(
        f'{{"i": [["k", "llvm"], [[], {herds[0].text(i)}]], "r": [[1], 0, 0, 0]}}\n' for i in range(9)
    )
    again = stock.stock.add_records(_core.read_block(lines.encode(), "log", 1, False, 1))
    np.testing.assert_array_equal(again.hashes, herds[0].hashes[:9])
    assert again.steps(3) == herds[0].steps(3)


def test_scores_are_those_of_the_network() -> None:
    stock = TaskStock(operator_task("dense", CPU), seed=1, sampled=32)
    herd, model = bred(stock, 100), load_model("epyc-small")
    assert model.native is not None
    X = embedded(herd, model.layout)
    columns = np.array([0, 70, 555])
    for head in (-1, 0):
        scores, kept = herd.score(model.layout.encoder, model.native, head, columns, 0)
        np.testing.assert_array_equal(scores, model.native.score(X, head, 0))
        np.testing.assert_array_equal(kept, X.reshape(len(X), -1)[:, columns])
    with pytest.raises(ValueError, match="columns: expected numbers below 4032, found 4032"):
        herd.score(model.layout.encoder, model.native, 0, np.array([4032]), 0)


def test_every_move_of_a_tile_size_is_reached() -> None:
    stock = TaskStock(operator_task("dense", CPU), seed=1, sampled=32)
    parent = stock.sample.take(np.array([0]))
    plan = _core.BreedingPlan(
        changes=[1, 0, 0, 0, 0], unrolls=[], most_innermost=64, another=0, fresh=0, cross=0, alter=0
    )
    found, _ = stock.stock.breed(
        parent, np.ones(1), plan, count=20000, seed=1, known=NONE, gpu=None, threads=0
    )
    reached = {found.text(i) for i in range(len(found))}
    steps = parent.steps(0)
    expected = set()
    for i, step in enumerate(steps):
        if step[0] == "SP" and step[3] > 1 and step[4][-1] <= 64:
            for lengths in moves(step[3], step[4]):
                changed = [*steps[:i], [*step[:4], lengths, step[5]], *steps[i + 1 :]]
                expected.add(str(changed).replace("'", '"'))
    assert reached == expected


def moves(extent: int, lengths: list[int]) -> list[list[int]]:
    """What TVM's MutateTileSize may make of the lengths of a split."""
    levels = [extent // int(np.prod(lengths)), *lengths]
    found = []
    for give, size in enumerate(levels):
        for take in range(len(levels)):
            for factor in range(2, size + 1):
                moved = [*levels]
                moved[give], moved[take] = moved[give] // factor, moved[take] * factor
                if give != take and size % factor == 0 and moved[-1] <= 64 | (take + 1 < len(levels)) * 2**31:
                    found.append(moved[1:])
    return found


def test_what_does_not_belong_together_is_refused() -> None:
    stock = TaskStock(operator_task("conv2d", CPU), seed=1, sampled=64)
    other = TaskStock(operator_task("dense", CPU), seed=1, sampled=16)
    sample = stock.sample
    with pytest.raises(ValueError, match="expected programs of this stock, found another's; add them"):
        stock.stock.joined([sample, other.sample])
    kinds = [
        [step[0] for step in sample.steps(i) if step[0] in ("SP", "CHW", "FSP")] for i in range(len(sample))
    ]
    elsewhere = next(i for i, kind in enumerate(kinds) if kind != kinds[0])
    with pytest.raises(RecordError, match="expected sketch 0 as of the other parent, found sketch"):
        stock.stock.cross(sample, 0, elsewhere, 1)
    damaged = (
        b'{"i": [["k", "llvm"], [[], [["CI", 1], ["SP", 2, 0, 64, [4, -2], 1]]]], "r": [[1], 0, 0, 0]}\n'
    )
    with pytest.raises(RecordError) as error:
        stock.stock.add_records(_core.read_block(damaged, "log", 1, False, 1))
    assert str(error.value) == (
        "program 0: step 1: expected lengths between 1 and 2147483647, found -2; "
        "breed programs that a search of Ansor drew"
    )
    for weights in (np.ones(3), np.full(len(sample), -1.0), np.full(len(sample), np.nan)):
        with pytest.raises(
            ValueError, match="weights: expected a finite number of 0 or more for each parent"
        ):
            stock.stock.breed(sample, weights, stock.plan, count=1, seed=1, known=NONE, gpu=None, threads=1)


def test_tvm_draws_more_where_a_search_gains_no_more() -> None:
    stock = TaskStock(operator_task("dense", CPU), seed=1, sampled=16)
    samples = [stock.sample]
    for _ in range(GROWTHS + 2):
        stock.grow()
        samples.append(stock.sample)

    sizes = [len(each) for each in samples]
    assert sizes[0] < sizes[1] < sizes[2] < sizes[GROWTHS]
    assert sizes[GROWTHS:] == [sizes[GROWTHS]] * 3
    for before, after in itertools.pairwise(samples):
        assert set(before.hashes.tolist()) <= set(after.hashes.tolist())
        assert len(set(after.hashes.tolist())) == len(after)
    again = TaskStock(operator_task("dense", CPU), seed=1, sampled=16)
    again.grow()
    again.grow()
    assert again.sample.hashes.tolist() == samples[1].hashes.tolist(), "a first call draws the sample alone"
