"""Windows larger than the input, means over large images: the same numbers as TVM's and as PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from relay_networks import module_of, operators_of, outputs_of

from tlp_tvm.ansor.graph.pooling_windows import with_cut_windows, with_means_by_rows
from tlp_tvm.ansor.loading.locate import load_tvm


def pooled(kind: str, **settings: Any) -> Any:
    """A pooling of (1, 3, 7, 5) with channels first."""
    relay = load_tvm().relay
    x = relay.var("x", shape=(1, 3, 7, 5))
    return module_of(getattr(relay.nn, f"{kind}_pool2d")(x, **settings))


def windows_of(module: Any) -> list[int]:
    """Of the one pooling."""
    return [int(extent) for extent in module["main"].body.attrs.pool_size]


@pytest.mark.parametrize("counted", [False, True])
def test_a_mean_over_a_window_that_is_too_large_is_one_over_the_input(counted: bool) -> None:
    before = pooled("avg", pool_size=(40, 40), strides=(40, 40), ceil_mode=True, count_include_pad=counted)
    after = with_cut_windows(before)

    assert windows_of(after) == [7, 5]
    assert operators_of(after) == ["nn.avg_pool2d"]
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5)


def test_the_mean_is_that_of_pytorch() -> None:
    x = np.random.default_rng(1).standard_normal((1, 3, 7, 5), dtype=np.float32)  # as in `outputs_of`
    after = with_cut_windows(pooled("avg", pool_size=(40, 40), strides=(40, 40), ceil_mode=True))
    expected = torch.nn.AvgPool2d(40, ceil_mode=True)(torch.from_numpy(x)).numpy()

    np.testing.assert_allclose(outputs_of(after)[0], expected, rtol=1e-5)


def test_a_maximum_too() -> None:
    before = pooled("max", pool_size=(9, 5), strides=(9, 5), ceil_mode=True)
    after = with_cut_windows(before)

    assert windows_of(after) == [7, 5]
    np.testing.assert_array_equal(outputs_of(after)[0], outputs_of(before)[0])


@pytest.mark.parametrize(
    "settings",
    [
        {"pool_size": (7, 5)},
        {"pool_size": (3, 3), "strides": (2, 2)},
        {"pool_size": (9, 9), "padding": (1, 2), "ceil_mode": True, "count_include_pad": True},
        {"pool_size": (9, 3), "strides": (9, 3), "ceil_mode": True},
    ],
)
def test_other_windows_stay(settings: dict[str, Any]) -> None:
    before = pooled("avg", **settings)

    assert load_tvm().ir.structural_equal(with_cut_windows(before), before)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("adaptive_avg", {"output_size": (1, 1)}),
        ("global_avg", {}),
        ("avg", {"pool_size": (24, 20), "strides": (24, 20)}),
    ],
)
def test_a_mean_over_a_large_image_is_two_convolutions(kind: str, settings: dict[str, Any]) -> None:
    before = last(kind, **settings)
    after = with_means_by_rows(before)

    assert operators_of(after) == ["nn.conv2d", "nn.conv2d"]
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "shape", "settings"),
    [
        ("adaptive_avg", (1, 14, 14, 6), {"output_size": (1, 1)}),
        ("adaptive_avg", (1, 24, 20, 6), {"output_size": (2, 2)}),
        ("adaptive_avg", (1, 480, 1, 6), {"output_size": (1, 1)}),
        ("avg", (1, 24, 20, 6), {"pool_size": (25, 21), "padding": (1, 1), "strides": (25, 21)}),
        ("avg", (1, 24, 20, 6), {"pool_size": (20, 20), "strides": (20, 20)}),
        ("global_max", (1, 24, 20, 6), {}),
    ],
)
def test_other_poolings_stay(kind: str, shape: tuple[int, ...], settings: dict[str, Any]) -> None:
    before = last(kind, shape, **settings)

    assert load_tvm().ir.structural_equal(with_means_by_rows(before), before)


def test_means_with_channels_first_stay() -> None:
    relay = load_tvm().relay
    before = module_of(relay.nn.global_avg_pool2d(relay.var("x", shape=(1, 6, 24, 20))))

    assert load_tvm().ir.structural_equal(with_means_by_rows(before), before)


def last(kind: str, shape: tuple[int, ...] = (2, 24, 20, 6), **settings: Any) -> Any:
    """A pooling with channels last."""
    relay = load_tvm().relay
    x = relay.var("x", shape=shape)
    return module_of(getattr(relay.nn, f"{kind}_pool2d")(x, layout="NHWC", **settings))
