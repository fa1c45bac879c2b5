"""The network: what its scores may depend on, and what they must not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from programs import LAYOUT, random_embeddings, tiny_settings
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.tlp import TLP, TLPSettings


def network(settings: TLPSettings, seed: int = 0) -> TLP:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return TLP(settings).eval()


@torch.inference_mode()
def scores(model: TLP, x: Tensor) -> Tensor:
    result: Tensor = model(x)
    return result


@pytest.fixture
def x() -> Tensor:
    return torch.from_numpy(random_embeddings())


@pytest.mark.parametrize("faithful", [False, True])
def test_one_score_a_program_and_platform(faithful: bool, x: Tensor) -> None:
    result = scores(network(tiny_settings(heads=3, faithful=faithful)), x)
    assert result.shape == (len(x), 3)
    assert bool(torch.isfinite(result).all())


def test_padding_changes_nothing(x: Tensor) -> None:
    long = tiny_settings(LAYOUT.with_shape(length=20))
    model = network(long)
    padded = torch.cat([x, torch.zeros(len(x), 12, x.shape[2])], 1)
    torch.testing.assert_close(scores(model, padded), scores(model, x), rtol=0, atol=1e-6)


def test_a_program_without_primitives_scores_zero(x: Tensor) -> None:
    assert scores(network(tiny_settings()), x)[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("faithful", [False, True])
def test_a_score_does_not_depend_on_the_batch(faithful: bool, x: Tensor) -> None:
    model = network(tiny_settings(faithful=faithful))
    alone = torch.cat([scores(model, x[i : i + 1]) for i in range(len(x))])
    torch.testing.assert_close(scores(model, x), alone, rtol=0, atol=1e-6)


def test_positions_tell_orders_apart(x: Tensor) -> None:
    whole = x[8:9]
    swapped = whole.flip(1)
    ordered = network(tiny_settings(positions=True))
    blind = network(tiny_settings(positions=False))
    assert (scores(ordered, whole) - scores(ordered, swapped)).abs().max() > 1e-5
    torch.testing.assert_close(scores(blind, whole), scores(blind, swapped), rtol=0, atol=1e-6)


def test_faithful_adds_the_bias_of_padding(x: Tensor) -> None:
    model = network(tiny_settings(faithful=True))
    short, longer = x[3:4], torch.cat([x[3:4], torch.zeros(1, 4, x.shape[2])], 1)
    assert (scores(model, short) - scores(model, longer)).abs().max() > 1e-4


def test_raw_numbers_are_scaled_unless_faithful() -> None:
    layout = FeatureLayout.preset("paper-cpu")
    ours, published = (tiny_settings(layout, faithful=faithful) for faithful in (False, True))
    x = torch.from_numpy(random_embeddings(layout))
    huge = x.clone()
    huge[:, :, len(layout.kinds) :] *= 1e6
    assert scores(network(ours), huge).abs().max() < 1e3
    assert scores(network(published), huge).abs().max() > 1e3
    logs = torch.sign(huge) * torch.log1p(huge.abs())
    logs[:, :, : len(layout.kinds)] = huge[:, :, : len(layout.kinds)]
    unscaled = dataclasses.replace(ours, raw_numbers=False)
    torch.testing.assert_close(
        scores(network(ours), huge), scores(network(unscaled), logs), rtol=0, atol=1e-5
    )


def test_the_published_shape() -> None:
    layout = FeatureLayout.preset("paper-cpu")
    settings = TLPSettings.of_layout(layout, 1, faithful=True)
    weights = {n: tuple(p.shape) for n, p in TLP(settings).named_parameters() if n.endswith(".weight")}
    shapes = {n.removeprefix("members.0.").removesuffix(".weight"): shape for n, shape in weights.items()}
    assert shapes == {
        "widen.0": (64, 22),
        "widen.2": (128, 64),
        "widen.4": (256, 128),
        "layers.0.query_key_value": (768, 256),
        "layers.0.out": (256, 256),
        "residuals.0.linear": (256, 256),
        "residuals.1.linear": (256, 256),
        "heads.0.0": (128, 256),
        "heads.0.2": (64, 128),
        "heads.0.4": (1, 64),
    }
    assert settings.attention_heads == 8


def test_members_are_networks_of_their_own_and_their_mean_counts(x: Tensor) -> None:
    model = network(tiny_settings(members=3))
    with torch.inference_mode():
        each = model.of_members(x)
    assert each.shape == (3, len(x), 2)
    assert (each[0] - each[1]).abs().max() > 1e-4
    torch.testing.assert_close(scores(model, x), each.mean(0))


def test_every_parameter_learns(x: Tensor) -> None:
    torch.manual_seed(0)  # a rectifier may be off for all of a few numbers
    model = TLP(tiny_settings(members=2, positions=True))
    model(x).square().sum().backward()
    still = [
        name for name, p in model.named_parameters() if p.grad is None or not bool(p.grad.abs().sum() > 0)
    ]
    assert still == []


def test_settings_survive_json() -> None:
    settings = tiny_settings(positions=True, dropout=0.1)
    assert TLPSettings.from_dict(settings.to_dict()) == settings


def test_the_published_network_learns_from_raw_numbers_of_gpu_logs() -> None:
    """Of 2e8, as public logs hold: rounding must not make infinite what the gradient is made of."""
    rows = FeatureLayout.preset("paper-gpu")
    model = network(TLPSettings.of_layout(rows, 1, faithful=True)).train()
    rng = np.random.default_rng(0)
    extents = 10.0 ** rng.uniform(0, 8.3, (32, rows.length, rows.width))
    model(torch.from_numpy(extents.astype(np.float32))).sum().backward()
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    assert gradients
    assert all(bool(torch.isfinite(each).all()) for each in gradients)


def test_the_published_network_learns_from_what_it_scores_with(x: Tensor) -> None:
    model = network(tiny_settings(faithful=True))
    torch.testing.assert_close(model.train()(x), scores(model.eval(), x), rtol=0, atol=1e-6)
