"""The native network scores as torch's does, with every instruction set that this machine has."""

from __future__ import annotations

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
from tlp_tvm.model.tlp import TLP, Backbone, TLPSettings

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


@pytest.mark.parametrize(
    "change", [{"backbone": Backbone.LSTM}, {"backbone": Backbone.TRANSFORMER}, {"faithful": True}]
)
def test_other_networks_are_left_to_torch(change: dict[str, Any]) -> None:
    config, network = tiny_config(**change)
    assert native_network(config.settings, network) is None
    model = ScoringModel("tiny", config, network.eval())
    x = programs(config.settings)
    np.testing.assert_allclose(model.score_all(x), by_torch(network, x), rtol=1e-5, atol=1e-5)


def test_a_model_scores_natively_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model("epyc-small")
    monkeypatch.setattr(model.network, "forward", None)
    assert np.isfinite(model.score_all(programs(model.config.settings))).all()


def test_what_does_not_fit_is_said() -> None:
    settings, network = network_of(SHAPES[3])
    native = native_network(settings, network)
    assert native is not None
    with pytest.raises(ValueError, match=r"X: expected \(N, 24, 30\), found \(1, 24, 31\); encode"):
        native.score(np.zeros((1, 24, 31), np.float32))
    with pytest.raises(ValueError, match="head: expected -1 to 1, found 2"):
        native.score(np.zeros((1, 24, 30), np.float32), 2)
    del network.members[0].norm
    with pytest.raises(ValueError, match="network: expected a tensor members.0.norm.weight, found none"):
        native_network(settings, network)
    other, _ = network_of({**SHAPES[3], "hidden": 16})
    with pytest.raises(
        ValueError, match="expected the shape that the settings say, found another of members"
    ):
        native_network(other, network_of(SHAPES[3])[1])
    with pytest.raises(ValueError, match='instruction_set: expected one of .*baseline, found "mmx"'):
        native_network(settings, network_of(SHAPES[3])[1], "mmx")
