"""Rows that no tile divides, in networks of PyTorch: what is longer computes the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.graph.reshapes import without_broadcasts
from tlp_tvm.metaschedule.graph.rows.more_rows import with_more_rows
from tlp_tvm.metaschedule.loading.targets import target_of
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import relax_of

pytestmark = pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch's own
WIDTH, HEADS, LONGER = 24, 2, 40
Tokens = torch.Tensor


class Encoder(torch.nn.Module):
    """A layer of a vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = (torch.nn.LayerNorm(WIDTH) for _ in range(2))
        self.query, self.key, self.value, self.mixed = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.wide, self.back = torch.nn.Linear(WIDTH, 64), torch.nn.Linear(64, WIDTH)

    def forward(self, x: Tokens) -> Tokens:
        """(B, tokens, WIDTH), as given."""
        normed = self.before(x)
        query, key, value = (
            layer(normed).view(len(x), x.shape[1], HEADS, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        weights = torch.softmax(query @ key.transpose(-1, -2) * 0.3, -1)
        x = x + self.mixed((weights @ value).transpose(1, 2).reshape(x.shape))
        return x + self.back(torch.nn.functional.gelu(self.wide(self.between(x))))


class Network(torch.nn.Module):
    """Two layers, and what becomes of their tokens."""

    def __init__(self, end: Callable[[Tokens], Tokens], tokens: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(Encoder(), Encoder())
        self.place = torch.nn.Parameter(torch.randn(1, tokens, WIDTH))
        self.end = end

    def forward(self, x: Tokens) -> Tokens:
        """(B, tokens, WIDTH) -> whatever `end` gives."""
        return self.end(self.layers(x + self.place))


def class_token(x: Tokens) -> Tokens:
    return x[:, 0]


def mean(x: Tokens) -> Tokens:
    return x.mean(1)


def sums(x: Tokens) -> Tokens:
    return x.cumsum(1)


def whole(x: Tokens) -> Tokens:
    return x


@pytest.mark.parametrize(
    ("tokens", "images", "end", "copies"),
    [
        (37, 1, class_token, (1, 1)),
        (37, 1, mean, (1, 1)),
        (37, 1, sums, (1, 1)),
        (37, 1, whole, (1, 1)),
        (37, 2, class_token, None),
        (36, 1, class_token, None),
    ],
)
def test_tokens_are_padded_once_and_cut_once(
    tokens: int, images: int, end: Callable[[Tokens], Tokens], copies: tuple[int, int] | None
) -> None:
    torch.manual_seed(0)
    network, x = Network(end, tokens).eval(), torch.randn(images, tokens, WIDTH)
    module = prepared(*relax_of(torch.export.export(network, (x,))))

    text = with_more_rows(without_broadcasts(module)).script()
    assert (f"(1, {LONGER}, {WIDTH})" in text) == (copies is not None)
    assert (text.count("R.call_tir(cls.padded"), text.count("strided_slice(")) == (copies or (0, 0))

    target = target_of("llvm -num-cores=2")
    (name,) = end_to_end.random_inputs(module)
    (found,) = end_to_end.run_once(end_to_end.compiled(module, {}, target), {name: x.numpy()}, target)
    np.testing.assert_allclose(found, network(x).detach().numpy(), rtol=1e-4, atol=1e-5)
