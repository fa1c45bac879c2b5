"""The native network scores as torch's does, with every instruction set that this machine has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from programs import tiny_config
from tlp_tvm import _core
from tlp_tvm.embedding import Embedding
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.native import native_network
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.tlp import TLP, TLPSettings

every_set = pytest.mark.parametrize("instruction_set", _core.instruction_sets())

SHAPES: list[dict[str, Any]] = [
    {"hidden": 64, "attention_heads": 4, "members": 2, "heads": 3},
    {"hidden": 32, "attention_heads": 4, "layers": 2},
    {"hidden": 40, "attention_heads": 2, "positions": True},
    {"hidden": 8, "attention_heads": 8, "heads": 2},
    {"hidden": 128, "attention_heads": 4, "width": 104, "length": 40},
]


def network_of(shape: dict[str, Any]) -> tuple[TLPSettings, TLP]:
    settings = TLPSettings(**{"length": 24, "width": 30, "one_hot": 6, **shape})
    torch.manual_seed(2)
    return settings, TLP(settings).eval()


def programs(settings: TLPSettings, count: int = 70) -> Embedding:
    """Of every length, with a row of zeros in the midst of some, and one program without any row."""
    rng = np.random.default_rng(0)
    x = rng.random((count, settings.length, settings.width), np.float32)
    x[rng.random(x.shape) < 0.7] = 0.0
    for i in range(count):
        x[i, i % (settings.length + 1) :] = 0.0
    x[::3, 1] = 0.0
    return x


def by_torch(network: torch.nn.Module, x: Embedding) -> NDArray[np.float32]:
    with torch.inference_mode():
        return np.asarray(network(torch.from_numpy(x)).numpy(), np.float32)


@every_set
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scores_are_those_of_torch(shape: dict[str, Any], instruction_set: str) -> None:
    settings, network = network_of(shape)
    x = programs(settings)
    native = native_network(settings, network, instruction_set)
    assert native is not None
    assert native.instruction_set == instruction_set

    scores = native.score(x)

    np.testing.assert_allclose(scores, by_torch(network, x), rtol=1e-5, atol=1e-5)
    assert (scores[0] == 0).all()  # no row
    for head in range(settings.heads):
        np.testing.assert_array_equal(native.score(x, head)[:, 0], scores[:, head])


def test_a_score_depends_on_nothing_else() -> None:
    settings, network = network_of(SHAPES[0])
    native = native_network(settings, network)
    assert native is not None
    x = programs(settings)
    whole = native.score(x, threads=1)
    order = np.random.default_rng(1).permutation(len(x))

    np.testing.assert_array_equal(native.score(x, threads=4), whole)
    np.testing.assert_array_equal(native.score(x[order])[np.argsort(order)], whole)
    np.testing.assert_array_equal(native.score(x[:1]), whole[:1])
    assert native.score(x[:0]).shape == (0, settings.heads)


def test_published_networks_are_left_to_torch() -> None:
    config, network = tiny_config(faithful=True)
    assert native_network(config.settings, network) is None
    model = ScoringModel("tiny", config, network.eval())
    x = programs(config.settings)
    np.testing.assert_allclose(model.score_all(x), by_torch(network, x), rtol=1e-5, atol=1e-5)


def test_a_model_scores_natively_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model("epyc-small")
    monkeypatch.setattr(model.network, "forward", None)
    assert np.isfinite(model.score_all(programs(model.config.settings))).all()
    assert model._native is not None
    assert model._native.instruction_set == (os.environ.get("NATIVE_KERNELS") or _core.instruction_sets()[0])


def test_what_does_not_fit_is_said() -> None:
    settings, network = network_of(SHAPES[3])
    native = native_network(settings, network)
    assert native is not None
    with pytest.raises(ValueError, match=r"X: expected \(N, 24, 30\), found \(1, 24, 31\); encode"):
        native.score(np.zeros((1, 24, 31), np.float32))
    with pytest.raises(ValueError, match="head: expected -1 to 1, found 2"):
        native.score(np.zeros((1, 24, 30), np.float32), 2)
    with pytest.raises(ValueError, match='instruction_set: expected one of .*baseline, found "mmx"'):
        native_network(settings, network, "mmx")


CURE = "; restore the model's file, or export the model again"


def of_shape(**changes: Any) -> _core.Network:
    """The weights of `SHAPES[3]` under other settings."""
    settings, network = network_of(SHAPES[3])
    return network_over(settings, network.state_dict(), **changes)


def network_over(settings: TLPSettings, weights: Mapping[str, torch.Tensor], **changes: Any) -> _core.Network:
    shape: dict[str, Any] = {
        name: getattr(settings, name)
        for name in (
            "length",
            "width",
            "hidden",
            "attention_heads",
            "layers",
            "members",
            "heads",
            "positions",
        )
    }
    tensors = {name: tensor.numpy() for name, tensor in weights.items()}
    return _core.Network(tensors, **{**shape, **changes})


@pytest.mark.parametrize(("name", "first", "last"), [(n, *r) for n, r in _core.setting_ranges().items()])
def test_a_setting_out_of_its_range_is_refused(name: str, first: int, last: int) -> None:
    """Once, no head of attention ended the process with SIGFPE."""
    for value in (first - 1, last + 1, -(2**31)):
        with pytest.raises(ValueError, match=f"^network: {name}: expected a number from ") as error:
            of_shape(**{name: value})
        assert str(error.value) == (
            f"network: {name}: expected a number from {first} to {last}, found {value}; restore the "
            "model's file, or train the model again"
        )


def test_heads_that_do_not_share_the_width_evenly_are_refused() -> None:
    with pytest.raises(ValueError, match="^network: attention_heads: ") as error:
        of_shape(attention_heads=3)
    assert str(error.value) == (
        "network: attention_heads: expected a divisor of hidden (8), found 3; restore the model's file, or "
        "train the model again"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"hidden": 16},
            "members.0.widen.0.weight: expected 16 x 30 numbers, as the settings say, found 8 x 30",
        ),
        (
            {"width": 31},
            "members.0.widen.0.weight: expected 8 x 31 numbers, as the settings say, found 8 x 30",
        ),
        (
            {"positions": True},
            "members.0.positions: expected 24 x 8 numbers, as the settings say, found 0 x 8",
        ),
        ({"layers": 2}, "members.0.layers.1.norm.weight: expected a tensor, found none"),
        (
            {"layers": 0},
            "members.0.layers.0.norm.bias: expected no such tensor, as the settings say, found 1 x 8 ",
        ),
        (
            {"heads": 1},
            "members.0.heads.1.0.bias: expected no such tensor, as the settings say, found 1 x 4 ",
        ),
        ({"members": 2}, "members.1.widen.0.weight: expected a tensor, found none"),
    ],
)
def test_settings_that_the_weights_do_not_fit_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="^network: members") as error:
        of_shape(**changes)
    assert str(error.value).startswith(f"network: {sentence}")
    assert str(error.value).endswith(CURE)


def test_weights_that_do_not_fit_are_refused() -> None:
    settings, network = network_of(SHAPES[3])
    weights = network.state_dict()
    name = "members.0.layers.0.out.bias"
    for other, found in (
        (torch.zeros(9), "expected 1 x 8 numbers, as the settings say, found 1 x 9"),
        (torch.zeros(2, 8), "expected 1 x 8 numbers, as the settings say, found 2 x 8"),
        (torch.full((8,), torch.nan), "expected finite numbers, found nan"),
        (torch.full((8,), -torch.inf), "expected finite numbers, found -inf"),
    ):
        with pytest.raises(ValueError, match=f"^network: {name}: ") as error:
            network_over(settings, {**weights, name: other})
        assert str(error.value) == f"network: {name}: {found}{CURE}"
    with pytest.raises(ValueError, match="expected a vector or a matrix, found a tensor of rank 3"):
        network_over(settings, {**weights, name: torch.zeros(1, 2, 4)})


@every_set
def test_what_overflows_is_no_number_as_in_torch(instruction_set: str) -> None:
    settings, network = network_of(SHAPES[0])
    with torch.inference_mode():
        for parameter in network.parameters():
            parameter.mul_(1e30)
    x = programs(settings)
    native = native_network(settings, network, instruction_set)
    assert native is not None
    np.testing.assert_array_equal(np.isfinite(native.score(x)), np.isfinite(by_torch(network, x)))
    assert np.isfinite(native.score(x)).mean() < 0.1  # of programs without a row
