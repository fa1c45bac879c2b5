"""Layer norms become one operator, however an exporter writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from relay_networks import constant, module_of, operators_of, outputs_of

from tlp_tvm.ansor.graph.layer_norm import OPERATOR, with_whole_layer_norms
from tlp_tvm.ansor.graph.rows import with_fewer_axes
from tlp_tvm.ansor.loading.locate import load_tvm


def layer_norm(x: Any, form: str, columns: int) -> Any:
    """The same norm as importers of different files write it."""
    relay = load_tvm().relay
    gamma, beta, eps = constant(columns, seed=3), constant(columns, seed=4), relay.const(1e-5)
    mean = relay.mean(x, axis=-1, keepdims=True)
    difference = relay.subtract(x, mean)
    squares = {
        "multiply": relay.multiply(difference, difference),
        "power": relay.power(difference, relay.const(2.0)),
        "twice": relay.power(relay.subtract(x, mean), relay.const(2.0)),
    }
    variance = (
        relay.mean(squares[form], axis=-1, keepdims=True) if form in squares else relay.variance(x, -1, True)
    )
    shifted = relay.add(variance, eps)
    normal = (
        relay.multiply(difference, relay.rsqrt(shifted))
        if form == "multiply"
        else relay.divide(difference, relay.sqrt(shifted))
    )
    return relay.add(relay.multiply(normal, gamma), beta)


@pytest.mark.parametrize("form", ["multiply", "power", "twice", "variance"])
@pytest.mark.parametrize("columns", [48, 20, 7])
def test_every_form_becomes_the_operator_and_gives_the_same(form: str, columns: int) -> None:
    relay = load_tvm().relay
    before = module_of(layer_norm(relay.var("x", shape=(2, 5, columns)), form, columns))

    after = with_whole_layer_norms(with_fewer_axes(before))

    assert operators_of(after) == ["reshape", OPERATOR, "reshape"]
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-4, atol=1e-5)


def test_relays_own_operator_becomes_it_too() -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(4, 32))
    whole = module_of(relay.nn.layer_norm(x, constant(32, seed=1), constant(32, seed=2), axis=-1))

    before = relay.transform.SimplifyInference()(whole)
    after = with_whole_layer_norms(with_fewer_axes(before))

    assert OPERATOR in operators_of(after)
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-4, atol=1e-5)


def test_a_norm_over_other_axes_stays() -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(8, 8))
    mean = relay.mean(x, axis=0, keepdims=True)
    difference = relay.subtract(x, mean)
    variance = relay.mean(relay.multiply(difference, difference), axis=0, keepdims=True)
    normal = relay.divide(difference, relay.sqrt(relay.add(variance, relay.const(1e-5))))
    before = module_of(relay.add(relay.multiply(normal, constant(8)), constant(8, seed=1)))

    assert OPERATOR not in operators_of(with_whole_layer_norms(before))
