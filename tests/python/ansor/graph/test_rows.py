"""Linear layers on three axes become matrix products, with what follows them on matrices too."""

from __future__ import annotations

import numpy as np
import pytest
from relay_networks import constant, linear, module_of, operators_of, outputs_of

from tlp_tvm.ansor.graph.rows import with_fewer_axes
from tlp_tvm.ansor.loading.locate import load_tvm


@pytest.mark.parametrize("batch", [1, 2])
def test_a_feed_forward_layer_is_on_matrices_between_two_reshapes(batch: int) -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(batch, 8, 16))
    hidden = relay.multiply(relay.erf(linear(x, batch, 16, 32, 1)), relay.const(0.5))
    before = module_of(relay.add(linear(hidden, batch, 32, 16, 2), x))

    folded = relay.transform.FoldConstant()(before)
    after = with_fewer_axes(folded)

    assert operators_of(after) == [
        "reshape", "nn.dense", "nn.bias_add", "erf", "multiply", "nn.dense", "nn.bias_add", "add", "reshape",
    ]  # fmt: skip
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5, atol=1e-5)


def test_weights_that_differ_within_the_batch_stay_a_batched_product() -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(2, 8, 16))
    before = module_of(relay.nn.batch_matmul(x, constant(2, 4, 16)))

    assert operators_of(with_fewer_axes(before)) == ["nn.batch_matmul"]


@pytest.mark.parametrize("mask", [(1, 1, 1, 8), (1, 1, 8, 8), (2, 3, 8, 8), (1,)])
def test_attention_scores_are_scaled_masked_and_normalised_on_three_axes(mask: tuple[int, ...]) -> None:
    relay = load_tvm().relay
    q, k = (relay.var(name, shape=(6, 8, 4)) for name in "qk")
    scores = relay.reshape(relay.nn.batch_matmul(q, k), (2, 3, 8, 8))
    masked = relay.add(relay.divide(scores, relay.const(2.0)), constant(*mask))
    before = module_of(relay.reshape(relay.nn.softmax(masked), (6, 8, 8)))

    after = with_fewer_axes(before)

    assert operators_of(after) == ["nn.batch_matmul", "divide", "add", "nn.softmax"]
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5, atol=1e-6)


def test_a_mask_over_the_second_axis_keeps_four_axes() -> None:
    relay = load_tvm().relay
    q, k = (relay.var(name, shape=(6, 8, 4)) for name in "qk")
    scores = relay.reshape(relay.nn.batch_matmul(q, k), (2, 3, 8, 8))
    before = module_of(relay.add(scores, constant(1, 3, 8, 8)))

    after = with_fewer_axes(before)

    assert operators_of(after) == ["nn.batch_matmul", "reshape", "add"]
    np.testing.assert_array_equal(outputs_of(after)[0], outputs_of(before)[0])


def test_what_looks_at_other_axes_gets_its_own_shape_back() -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(2, 8, 16))
    before = module_of(relay.nn.softmax(relay.sum(linear(x, 2, 16, 4, 1), axis=[1]), axis=0))

    folded = relay.transform.FoldConstant()(before)
    after = with_fewer_axes(folded)

    assert operators_of(after) == ["reshape", "nn.dense", "nn.bias_add", "reshape", "sum", "nn.softmax"]
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("unbiased", [False, True])
def test_a_variance_stays_as_unbiased_as_it_is(unbiased: bool) -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(3, 6))
    before = module_of(relay.variance(x, [-1], keepdims=True, unbiased=unbiased))
    after = with_fewer_axes(before)

    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5)
