"""Rows that no tile divides: what is longer computes the same, and only where it costs few copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from relay_networks import constant, module_of, operators_of, outputs_of

from tlp_tvm.ansor.graph.padded_rows import with_padded_rows
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.network.longer_axes import padded_extent

TOKENS, WIDTH, HEADS = 37, 24, 3


def dense(x: Any, columns_in: int, columns_out: int, seed: int) -> Any:
    relay = load_tvm().relay
    product = relay.nn.dense(x, constant(columns_out, columns_in, seed=seed))
    return relay.add(product, constant(1, columns_out, seed=seed + 50))


def heads_of(x: Any, order: tuple[int, ...]) -> Any:
    relay = load_tvm().relay
    split = relay.transpose(relay.reshape(x, (1, TOKENS, HEADS, WIDTH // HEADS)), order)
    return relay.reshape(split, (-1, *(TOKENS if axis == 1 else WIDTH // HEADS for axis in order[2:])))


def attention(x: Any, parts: list[Any], scaled: Any) -> Any:
    """Of three parts of one product, as TVM's importers leave it, with its residual."""
    relay = load_tvm().relay
    q, k, v = (
        heads_of(part, order)
        for part, order in zip(parts, [(0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)], strict=True)
    )
    weights = relay.nn.softmax(scaled(relay.nn.batch_matmul(q, k, transpose_b=False)))
    mixed = relay.reshape(
        relay.nn.batch_matmul(weights, v, transpose_b=False), (1, HEADS, TOKENS, WIDTH // HEADS)
    )
    rows = relay.reshape(relay.transpose(mixed, (0, 2, 1, 3)), (TOKENS, WIDTH))
    return relay.add(x, dense(rows, WIDTH, WIDTH, 2))


def sliced(product: Any) -> list[Any]:
    relay = load_tvm().relay
    return [relay.strided_slice(product, [0, WIDTH * i], [-1, WIDTH], slice_mode="size") for i in range(3)]


def split(product: Any) -> list[Any]:
    return list(load_tvm().relay.split(product, 3, axis=1))


def test_the_rows_of_an_encoder_are_padded_once_and_cut_once() -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(TOKENS, WIDTH))
    half = relay.const(0.5)
    y = attention(x, sliced(dense(x, WIDTH, 3 * WIDTH, 1)), lambda scores: relay.multiply(scores, half))
    y = relay.add(y, dense(relay.nn.relu(dense(y, WIDTH, 64, 3)), 64, WIDTH, 4))
    before = module_of(relay.take(y, relay.const(0), axis=0))

    after = with_padded_rows(before)

    names = operators_of(after)
    assert names.count("nn.pad") == 1
    assert names.count("strided_slice") == operators_of(before).count("strided_slice") + 1
    assert names[-2:] == ["strided_slice", "take"]
    assert "(40, 72)" in str(after)
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mask", [(1, 1, TOKENS), (HEADS, TOKENS, TOKENS), (1,)])
def test_masks_and_split_parts_are_padded_too(mask: tuple[int, ...]) -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(TOKENS, WIDTH))
    hidden = constant(*mask, seed=9)
    y = attention(x, split(dense(x, WIDTH, 3 * WIDTH, 1)), lambda scores: relay.add(scores, hidden))
    before = module_of(y)

    after = with_padded_rows(before)

    assert operators_of(after).count("nn.pad") == 1
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5, atol=1e-6)


def test_what_lies_behind_the_rows_never_reaches_a_sum() -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(TOKENS, WIDTH))
    y = dense(x, WIDTH, WIDTH, 1)
    square = relay.nn.batch_matmul(
        relay.reshape(y, (1, TOKENS, WIDTH)),
        relay.reshape(y, (1, TOKENS, WIDTH)),
        transpose_a=True,
        transpose_b=False,
    )
    before = module_of(relay.Tuple([square, relay.mean(y, axis=0), relay.divide(relay.const(1.0), y)]))

    after = with_padded_rows(before)

    for mine, theirs in zip(outputs_of(after), outputs_of(before), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_a_network_that_needs_its_rows_after_each_layer_stays_as_it_is() -> None:
    relay = load_tvm().relay
    y = relay.var("x", shape=(TOKENS, WIDTH))
    for seed in range(4):
        y = relay.reverse(dense(y, WIDTH, WIDTH, seed), axis=0)
    before = module_of(y)

    after = with_padded_rows(before)

    assert load_tvm().ir.structural_equal(before, after)


@pytest.mark.parametrize(
    ("rows", "longer"),
    [(197, 208), (257, 272), (577, 592), (37, 40), (94, 96), (31, 0), (196, 0), (198, 0), (50, 0), (128, 0)],
)
def test_only_rows_that_no_tile_divides_are_more(rows: int, longer: int) -> None:
    assert padded_extent(rows) == longer
