"""How programs are tiled: of Ansor's steps, of MetaSchedule's traces, and of what has no such tiling."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.trees.tile_sizes import TILE_WIDTH, tile_sizes

SPATIAL = [[1, 1, 1, 1], [4, 7, 1, 2], [1, 2, 7, 2], [2, 4, 1, 24]]
REDUCTION = [[3, 1], [1, 3], [16, 8]]
"""Of a convolution: rows of 2 x 2 vectors of 24 numbers."""

RAW = 22
"""Columns of axes of their own; the others are of all."""


def of_ansor(spatial: list[list[int]], reduction: list[list[int]]) -> NDArray[np.float32]:
    splits = [
        ["SP", 2, axis, int(np.prod(factors)), factors[1:], 1]
        for axis, factors in enumerate([*spatial, *reduction])
    ]
    steps: list[Any] = [["CI", 1], *splits, ["RE", 2, [0, 1]], ["SP", 3, 0, 64, [2, 2, 4], 1]]
    record = json.dumps({"i": [["[]", "llvm"], [[], steps]], "r": [[1.0], 0, 1.0, 1], "v": "v0.6"})
    block = _core.read_block(record.encode() + b"\n", "programs", 1, False, 1)
    return encoded(block, "ansor")


def of_metaschedule(spatial: list[list[int]], reduction: list[list[int]]) -> NDArray[np.float32]:
    axes, number = [*spatial, *reduction], itertools.count(1)
    loops = [f"l{next(number)}" for _ in axes]
    instructions: list[Any] = [
        ["GetSBlock", [], ["conv", "main"], ["b0"]],
        ["GetLoops", ["b0"], [], loops],
    ]
    decisions = []
    for loop, factors in zip(loops, axes, strict=True):
        decided = [f"v{next(number)}" for _ in factors]
        decisions.append([len(instructions), factors])
        instructions.append(["SamplePerfectTile", [loop], [len(factors), 64], decided])
        instructions.append(["Split", [loop, *decided], [1, 0], [f"l{next(number)}" for _ in factors]])
    text = json.dumps([instructions, decisions]).encode() + b"\n"
    return encoded(_core.read_traces(text, "programs", 1, "trace", False), "metaschedule")


def encoded(block: Any, name: str) -> NDArray[np.float32]:
    layout = FeatureLayout.preset(name)
    out = np.empty((1, layout.length, layout.width), np.float32)
    block.encode(layout.encoder, out, 1)
    return tile_sizes(out, layout)[0]


def test_both_frameworks_show_the_same_tiling() -> None:
    found = of_metaschedule(SPATIAL, REDUCTION)
    assert found.shape == (TILE_WIDTH,)
    np.testing.assert_allclose(of_ansor(SPATIAL, REDUCTION), found, atol=1e-5)
    axes = np.exp2(found[:RAW]).round().astype(int)
    assert axes[:16].reshape(4, 4).tolist() == SPATIAL[::-1]
    assert axes[16:].reshape(3, 2).tolist() == REDUCTION[::-1]


def test_what_the_innermost_loops_keep_is_said() -> None:
    of_all = of_metaschedule(SPATIAL, REDUCTION)[RAW:]
    np.testing.assert_allclose(np.exp2(of_all[:4]), [8, 56, 7, 96], rtol=1e-5)
    np.testing.assert_allclose(np.exp2(of_all[4:6]), [48, 24], rtol=1e-5)
    rows, around, turns, turns_around, numbers, twos = np.exp2(of_all[6:12]).round().tolist()
    assert (rows, around, turns, turns_around, numbers, twos) == (4, 7, 96, 672, 672, 8)
    assert of_all[12:14].tolist() == [4, 3]
    np.testing.assert_allclose(np.exp2(of_all[14:]), [56 * 28 * 192, 9 * 128, 192], rtol=1e-4)


def test_without_such_a_tiling_there_are_zeros() -> None:
    assert not of_metaschedule([[2, 3], [4, 5]], [[8, 2]]).any()
    for name in ("paper-cpu", "ansor"):
        layout = FeatureLayout.preset(name)
        empty = np.zeros((2, layout.length, layout.width), np.float32)
        assert not tile_sizes(empty, layout).any()


def test_a_tiling_may_lack_reductions_or_have_more_axes_than_are_kept() -> None:
    alone = of_metaschedule(SPATIAL, [])
    np.testing.assert_allclose(alone[:16], of_metaschedule(SPATIAL, REDUCTION)[:16])
    assert not alone[16:22].any()
    many = of_metaschedule([[3, 1, 1, 1], *SPATIAL], [[5, 1], *REDUCTION])
    np.testing.assert_allclose(many[:RAW], of_metaschedule(SPATIAL, REDUCTION)[:RAW])
    assert many[RAW + 12 : RAW + 14].tolist() == [5, 4]
