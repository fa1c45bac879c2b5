"""Windows larger than the input: cut, and the same numbers as TVM's own and as PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from relay_networks import module_of, operators_of, outputs_of

from tlp_tvm.ansor.graph.pooling_windows import with_cut_windows
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
