"""What TVM does with the repaired computes, and not without: packed weights, and Winograd's of any tile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

from tlp_tvm.ansor.graph.constants import folding_pass
from tlp_tvm.ansor.graph.operator_repairs import packable_dense, winograd_of_any_tile
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.search.sampling import sample_states

TARGET = "llvm -num-cores=1"


def dense_task() -> Any:
    """The task of a dense layer, from a network, as `extract_tasks` gives it."""
    tvm = load_tvm()
    relay = tvm.relay
    data = relay.var("data", shape=(8, 32))
    weights = relay.const(np.ones((48, 32), dtype=np.float32))
    body = relay.nn.bias_add(relay.nn.dense(data, weights), relay.const(np.ones(48, dtype=np.float32)))
    module = tvm.IRModule.from_expr(relay.Function([data], body))
    [task] = tvm.auto_scheduler.extract_tasks(module["main"], {}, TARGET)[0]
    return task


def rewritten(task: Any) -> Any:
    """The compute and schedule of a program of it, with its weights packed."""
    state = sample_states(task, 16)[0]
    return task.compute_dag.apply_steps_from_state(state, layout_rewrite=task.layout_rewrite_option)


def test_weights_are_packed_with_the_repair() -> None:
    with packable_dense():
        task = dense_task()
    _, tensors = rewritten(task)

    assert len(tensors[1].shape) > 2


def test_this_tvm_still_needs_the_repair() -> None:
    """Fails with a TVM that packs by itself: then the repair can go."""
    with pytest.raises(load_tvm().TVMError):
        rewritten(dense_task())


def test_the_repair_ends_with_its_block() -> None:
    topi = load_tvm().topi
    before = topi.nn.matmul
    with packable_dense():
        assert topi.nn.matmul is not before
    assert topi.nn.matmul is before


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_products_are_those_of_tvm(transpose_a: bool, transpose_b: bool) -> None:
    tvm = load_tvm()
    shapes = ((6, 4) if transpose_a else (4, 6)), ((5, 6) if transpose_b else (6, 5))
    a, b = (tvm.te.placeholder(shape, name=name) for shape, name in zip(shapes, "ab", strict=True))
    arrays = [
        np.random.default_rng(i).standard_normal(shape, dtype=np.float32) for i, shape in enumerate(shapes)
    ]
    with packable_dense():
        product = tvm.topi.nn.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    module = tvm.build(tvm.te.create_schedule(product.op), [a, b, product], "llvm")
    out = tvm.nd.empty((4, 5))
    module(*map(tvm.nd.array, arrays), out)

    expected = (arrays[0].T if transpose_a else arrays[0]) @ (arrays[1].T if transpose_b else arrays[1])
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)


SIZES = pytest.mark.parametrize(
    ("rows", "columns"), [(8, 8), (7, 7), (5, 9), (9, 5), (12, 4), (4, 12)], ids=str
)
WIDE, TALL = (1, 2, 0, 1), (6, 0, 4, 1)
"""Padding: above, left, below, right."""


def error_of(
    rows: int,
    columns: int,
    tile: int,
    repair: Callable[[], AbstractContextManager[None]],
    padding: tuple[int, ...] = WIDE,
) -> float:
    """How far a convolution in Winograd's way is from one as usual, at most."""
    tvm, random = load_tvm(), np.random.default_rng(0)
    relay, te = tvm.relay, tvm.te
    values = random.standard_normal((2, rows, columns, 3), dtype=np.float32)
    taps = random.standard_normal((3, 3, 3, 5), dtype=np.float32)
    weights = relay.nn.contrib_conv2d_winograd_weight_transform(
        relay.const(np.transpose(taps, (3, 2, 0, 1))), tile_size=tile
    )
    folded = folding_pass()(relay.transform.InferType()(tvm.IRModule.from_expr(weights)))[
        "main"
    ].body.data.numpy()
    data, weight = te.placeholder(values.shape), te.placeholder(folded.shape)
    with repair():
        result = tvm.topi.nn.conv2d_winograd_nhwc_without_weight_transform(
            data, weight, 1, padding, 1, "float32"
        )
    built = tvm.build(te.create_schedule(result.op), [data, weight, result], TARGET)
    given = tvm.nd.empty([int(extent) for extent in result.shape])
    built(tvm.nd.array(values), tvm.nd.array(folded), given)
    top, left, bottom, right = padding
    padded = np.pad(values, ((0, 0), (top, bottom), (left, right), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    expected = np.einsum("nhwcij,ijco->nhwo", windows, taps)
    return float(np.abs(given.numpy() - expected).max())


@SIZES
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("padding", [WIDE, TALL])
def test_winograd_computes_what_a_convolution_does(
    rows: int, columns: int, tile: int, padding: tuple[int, ...]
) -> None:
    assert error_of(rows, columns, tile, winograd_of_any_tile, padding) < 1e-4


def test_this_tvm_still_needs_winograds_repair() -> None:
    """Fails with a TVM that is right about tall images: then that part of the repair can go."""
    assert error_of(12, 4, 4, contextlib.nullcontext) > 1


@pytest.mark.parametrize(("rows", "tile"), [(8, 2), (8, 4), (12, 2), (12, 4)])
def test_transformed_weights_are_packed(rows: int, tile: int) -> None:
    tvm = load_tvm()
    relay = tvm.relay
    data = relay.var("data", shape=(1, rows, 8, 16))
    weights = relay.const(np.ones((tile + 2, tile + 2, 32, 16), np.float32))
    body = relay.nn.contrib_conv2d_winograd_without_weight_transform(
        data,
        weights,
        tile_size=tile,
        channels=32,
        kernel_size=(3, 3),
        padding=(1, 1),
        data_layout="NHWC",
        kernel_layout="HWIO",
    )
    module = tvm.IRModule.from_expr(relay.Function([data], body))
    with winograd_of_any_tile():
        [task] = tvm.auto_scheduler.extract_tasks(module["main"], {}, TARGET)[0]

    _, tensors = rewritten(task)
    assert len(tensors[1].shape) > 4
    [sums] = [op for op in task.compute_dag.ops if op.name == "bgemm"]
    assert [int(extent) for extent in sums.output(0).shape[:2]] == [tile + 2] * 2
