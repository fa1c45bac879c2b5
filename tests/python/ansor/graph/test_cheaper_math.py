"""Powers that are written out as products and those that are not; sigmoids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from relay_networks import constant, module_of, operators_of, outputs_of

from tlp_tvm.ansor.graph.cheaper_math import (
    with_products_for_powers,
    with_sums_for_prelus,
    with_tanh_for_sigmoids,
)
from tlp_tvm.ansor.graph.pipeline import prepare
from tlp_tvm.ansor.loading.locate import load_tvm


def raised(exponent: Any) -> Any:
    """(2, 5) to a power."""
    relay = load_tvm().relay
    return module_of(relay.power(relay.var("x", shape=(2, 5)), exponent))


@pytest.mark.parametrize("exponent", [2, 3, 4])
def test_a_small_power_is_products(exponent: int) -> None:
    before = raised(load_tvm().relay.const(float(exponent), "float32"))
    after = with_products_for_powers(before)

    assert operators_of(after) == ["multiply"] * (1 if exponent == 2 else 2)
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5)


def test_one_that_has_axes_of_its_own_is_too() -> None:
    after = with_products_for_powers(raised(load_tvm().relay.const(np.full((1, 1), 3, np.float32))))

    assert operators_of(after) == ["multiply", "multiply"]


def test_others_stay() -> None:
    relay = load_tvm().relay
    for exponent in (
        relay.const(0.5, "float32"),
        relay.const(5.0, "float32"),
        relay.const(-2.0, "float32"),
        relay.const(np.full((3, 1, 1), 2, np.float32)),  # more axes than what is raised
        constant(5),
        relay.var("exponent", shape=()),
    ):
        before = raised(exponent)
        assert load_tvm().ir.structural_equal(with_products_for_powers(before), before)


def sigmoid_of(dtype: str) -> Any:
    """Of numbers that are far enough apart to saturate."""
    relay = load_tvm().relay
    x = relay.const(np.linspace(-30, 30, 601), dtype)
    return module_of(relay.sigmoid(x))


def test_a_sigmoid_is_a_polynomial_in_the_end() -> None:
    before = sigmoid_of("float32")
    after = load_tvm().relay.transform.FastMath()(with_tanh_for_sigmoids(before))

    assert operators_of(after) == ["multiply", "fast_tanh", "multiply", "add"]
    (expected,), (found,) = outputs_of(before), outputs_of(after)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_a_sigmoid_of_other_numbers_stays() -> None:
    before = sigmoid_of("float64")

    assert load_tvm().ir.structural_equal(with_tanh_for_sigmoids(before), before)


@pytest.mark.parametrize(("shape", "axis"), [((2, 6, 3, 4), 1), ((2, 3, 4, 6), 3), ((5, 6), 1)])
def test_a_prelu_is_a_sum(shape: tuple[int, ...], axis: int) -> None:
    relay = load_tvm().relay
    before = module_of(relay.nn.prelu(relay.var("x", shape=shape), constant(6), axis=axis))
    after = with_sums_for_prelus(before)

    assert "nn.prelu" not in operators_of(after)
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-6)


def test_a_prelu_is_done_with_channels_last() -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(1, 3, 8, 8))
    first = relay.nn.prelu(relay.nn.conv2d(x, constant(6, 3, 3, 3)), constant(6))
    before = module_of(relay.nn.conv2d(first, constant(4, 6, 3, 3)))
    after = prepare(before, {}, load_tvm().target.Target("llvm -num-cores=1"))

    assert operators_of(after.module).count("layout_transform") == 2, "of what is given and of the result"
    np.testing.assert_allclose(outputs_of(after.module)[0], outputs_of(before)[0], rtol=1e-4, atol=1e-6)
