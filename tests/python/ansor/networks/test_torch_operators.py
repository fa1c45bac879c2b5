"""Operators of TorchScript that TVM's importer lacks, or gets wrong, compute what torch computes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from exported import image
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.targets import quiet_builds
from tlp_tvm.ansor.networks.builtin import network_from
from tlp_tvm.errors import NetworkError


@pytest.mark.parametrize(
    ("padding", "kernel", "dilation", "groups"),
    [("valid", 3, 1, 1), ("same", 3, 1, 1), ("same", 4, 1, 1), ("same", (2, 3), 2, 3), ("valid", 3, 2, 3)],
)
def test_a_convolution_whose_padding_is_a_word(
    tmp_path: Path, padding: str, kernel: int | tuple[int, int], dilation: int, groups: int
) -> None:
    layer = torch.nn.Conv2d(3, 6, kernel, padding=padding, dilation=dilation, groups=groups).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of even kernels
        found, expected = by_tvm_and_torch(layer, torch.from_numpy(image()), tmp_path)

    np.testing.assert_allclose(found, expected, atol=1e-5)


class Attention(torch.nn.Module):
    """Scaled products of an input with itself."""

    def __init__(self, scale: float | None, mask: torch.Tensor | None) -> None:
        super().__init__()
        self.scale = scale
        self.register_buffer("mask", mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(1, 2, 7, 8) -> the same."""
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(x, x, x, attn_mask=self.mask, scale=self.scale)


@pytest.mark.parametrize("scale", [None, 0.9])
@pytest.mark.parametrize("mask", [None, torch.ones(7, 7).tril().bool(), torch.linspace(-1, 1, 7)[None]])
def test_attention_has_its_scale_and_its_mask(
    tmp_path: Path, scale: float | None, mask: torch.Tensor | None
) -> None:
    torch.manual_seed(0)
    found, expected = by_tvm_and_torch(Attention(scale, mask), torch.randn(1, 2, 7, 8), tmp_path)

    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_attention_of_shared_heads_is_refused_by_name(tmp_path: Path) -> None:
    class Shared(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            attention = torch.nn.functional.scaled_dot_product_attention
            return attention(x, x[:, :1], x[:, :1], enable_gqa=True)

    with pytest.raises(
        NetworkError,
        match=r"net\.pt: expected a network of operators that TVM can import, found: "
        r"scaled_dot_product_attention with enable_gqa; export it without these",
    ):
        by_tvm_and_torch(Shared(), torch.randn(1, 2, 7, 8), tmp_path)


def by_tvm_and_torch(network: torch.nn.Module, x: torch.Tensor, folder: Path) -> tuple[Any, Any]:
    """What a network gives from its TorchScript file, and what it gives."""
    tvm = load_tvm()
    from tvm.contrib import graph_executor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated
        torch.jit.trace(network, x).save(folder / "net.pt")
    module, parameters, [name] = network_from(str(folder / "net.pt"))
    with quiet_builds(), tvm.transform.PassContext(opt_level=3):
        library = tvm.relay.build(module, target="llvm", params=parameters)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.set_input(name, x.numpy())
    executor.run()
    return executor.get_output(0).numpy(), network(x).detach().numpy()
