"""Winograd's convolutions as products between transforms: the same results, and one task for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from relay_networks import constant, module_of, operators_of, outputs_of
from test_convolutions import WINOGRAD, outputs_by_ansor, three_by_three
from test_operator_repairs import rewritten

from tlp_tvm.ansor.graph import convolutions
from tlp_tvm.ansor.graph.pipeline import prepare
from tlp_tvm.ansor.graph.winograd.winograd_products import ENTERING, GIVEN, are_products
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring.work import weights_of

TARGET = "llvm -mcpu=core-avx2 -num-cores=1"


def prepared_of(module: Any, *left_out: str) -> Any:
    return prepare(module, {}, load_tvm().target.Target(TARGET), left_out)


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize(
    ("shape", "given", "padding"),
    [
        ((1, 8, 8, 32), 16, (1, 1)),
        ((2, 9, 7, 6), 5, (1, 1)),
        ((1, 5, 13, 3), 16, (0, 2, 1, 0)),
        ((1, 3, 3, 4), 4, (2, 1)),
    ],
)
def test_a_network_computes_the_same(
    tile: int,
    shape: tuple[int, ...],
    given: int,
    padding: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(convolutions, "tile_for", lambda *_: tile)
    module = three_by_three(shape, given, padding=padding)

    assert operators_of(prepared_of(module).module)[:3] == [ENTERING, WINOGRAD, GIVEN]
    np.testing.assert_allclose(outputs_by_ansor(module), outputs_of(module)[0], rtol=1e-4, atol=1e-4)


def two_that_differ_in_what_follows() -> Any:
    """Two convolutions of one size, one with an activation, the other with a residual sum."""
    relay = load_tvm().relay
    how = {"data_layout": "NHWC", "kernel_layout": "HWIO", "channels": 64, "kernel_size": (3, 3)}
    x = relay.var("x", shape=(1, 16, 16, 64))
    first = relay.nn.relu(relay.nn.conv2d(x, constant(3, 3, 64, 64), padding=(1, 1), **how))
    second = relay.nn.conv2d(first, constant(3, 3, 64, 64, seed=1), padding=(1, 1), **how)
    return module_of(relay.add(second, x))


def test_the_products_are_one_task_with_packed_weights() -> None:
    tvm = load_tvm()
    prepared = prepared_of(two_that_differ_in_what_follows())
    with prepared.operators():
        tasks, counts = tvm.auto_scheduler.extract_tasks(prepared.module["main"], {}, TARGET)

    [(task, count)] = [each for each in zip(tasks, counts, strict=True) if "winograd" in str(each[0].desc)]
    assert count == 2
    _, tensors = rewritten(task)
    assert len(tensors[1].shape) > 4
    assert weights_of(task.compute_dag) == (1,)


def test_runs_begun_without_go_on_without() -> None:
    module = three_by_three()

    assert "transforms by hand" in prepared_of(module).passes
    before = prepared_of(module, "transforms by hand")
    assert "winograd" in before.passes
    assert operators_of(before.module)[0] == WINOGRAD


def test_no_convolution_is_taken_for_products() -> None:
    te = load_tvm().te
    pixels, image = te.placeholder((6, 6, 9, 16)), te.placeholder((1, 16, 16, 16))

    assert are_products(pixels, [6, 6, 32, 16], (1, 0, 0, 1))
    assert not are_products(pixels, [6, 6, 32, 16], (1, 1, 1, 1))
    assert not are_products(image, [6, 6, 32, 16], (1, 0, 0, 1))
