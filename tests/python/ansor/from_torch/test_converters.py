"""Operators of TorchScript that TVM's importer lacks, or gets wrong, compute what torch computes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from exported import Called, image
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


def test_attention_of_shared_heads(tmp_path: Path) -> None:
    class Shared(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            attention = torch.nn.functional.scaled_dot_product_attention
            return attention(x, x[:, :1], x[:, :1], enable_gqa=True)

    found, expected = by_tvm_and_torch(Shared(), torch.randn(1, 2, 7, 8), tmp_path)

    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


LACKING: dict[str, Callable[[torch.Tensor], Any]] = {
    "aminmax": lambda x: torch.aminmax(x)[1],
    "atan2": lambda x: torch.atan2(x, x.flip(1)),
    "bitwise or": lambda x: (x > 1) | (x < -1),
    "cdist": lambda x: torch.cdist(x[0], x[0] + 1),
    "channel_shuffle": lambda x: functional.channel_shuffle(x, 2),
    "cosine_similarity": lambda x: functional.cosine_similarity(x, x.flip(2), 1),
    "cumprod": lambda x: x.cumprod(1),
    "diagonal": lambda x: torch.diagonal(x, -1, 2, 3),
    "frac": torch.frac,
    "hardshrink": functional.hardshrink,
    "im2col": lambda x: functional.unfold(x, 3, padding=1),
    "linear interpolation": lambda x: functional.interpolate(x[0], scale_factor=2.0, mode="linear"),
    "median": lambda x: x.median(1)[0],
    "mish": functional.mish,
    "movedim": lambda x: x.movedim(1, 3),
    "nan_to_num": lambda x: torch.nan_to_num(torch.log(x)),
    "pixel_unshuffle": lambda x: functional.pixel_unshuffle(x, 2),
    "rms_norm": lambda x: functional.rms_norm(x, (6,)),
    "softshrink": functional.softshrink,
    "take_along_dim": lambda x: torch.take_along_dim(x, x.argsort(3), 3),
    "windows of an axis": lambda x: x.unfold(3, 3, 2),
}
MISREAD: dict[str, Callable[[torch.Tensor], Any]] = {
    "add with a factor": lambda x: torch.add(x, x * x, alpha=3),
    "argmax": lambda x: x.argmax(1),
    "argsort": lambda x: x.argsort(1),
    "avg_pool2d with a divisor": lambda x: functional.avg_pool2d(x, 3, 2, 1, divisor_override=5),
    "clamp of whole numbers": lambda x: (x * 9).to(torch.int64).clamp(min=3),
    "clamp by tensors": lambda x: torch.clamp(x, torch.zeros(1), torch.ones(1)),
    "group_norm without weights": lambda x: functional.group_norm(x, 2),
    "layer_norm without weights": lambda x: functional.layer_norm(x, (6,)),
    "lerp": lambda x: torch.lerp(x, x * x, 0.3),
    "max along an axis": lambda x: x.max(1)[1],
    "meshgrid": lambda x: torch.meshgrid(x[0, 0, 0], x[0, 0, 1, :4], indexing="xy")[1],
    "pad with what is on the other side": lambda x: functional.pad(x, (1, 2, 3, 0), mode="circular"),
    "quotient without its fraction": lambda x: torch.div(x, 0.3, rounding_mode="trunc"),
    "round to decimals": lambda x: torch.round(x, decimals=2),
    "sort": lambda x: x.sort(1)[1],
    "sum of truths": lambda x: (x > 0).sum(1),
    "transposed and dilated": lambda x: functional.conv_transpose2d(x, torch.ones(4, 3, 3, 3), dilation=2),
    "to truths": lambda x: x.to(torch.bool),
    "to small numbers": lambda x: (x * 9).to(torch.int8),
}


def with_zeros(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, :2] = 0
    return y


def with_more(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[:, 1] += 1
    y[:, :, 2:4] *= 3
    return y


def with_a_mask(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[y < 0] = 0.5
    return y


def with_itself(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    return torch.relu_(y) + y


IN_PLACE = {"zeros": with_zeros, "more": with_more, "itself": with_itself, "a mask": with_a_mask}


@pytest.mark.parametrize("functions", [LACKING, MISREAD, IN_PLACE], ids=["lacking", "misread", "in place"])
def test_operators_are_what_they_are_in_torch(
    tmp_path: Path, functions: dict[str, Callable[[torch.Tensor], Any]]
) -> None:
    torch.manual_seed(0)

    found, expected = all_by_tvm_and_torch(
        Called(list(functions.values())), torch.randn(1, 4, 6, 6), tmp_path
    )

    for name, ours, theirs in zip(functions, found, expected, strict=True):
        assert ours.dtype == theirs.dtype, name
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_encoder_of_torch(tmp_path: Path, first: bool, activation: str) -> None:
    torch.manual_seed(0)
    how: dict[str, Any] = {"batch_first": True, "norm_first": first, "activation": activation}
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, **how)
    network = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()

    found, expected = by_tvm_and_torch(network, torch.randn(2, 5, 8), tmp_path)

    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_an_encoder_with_a_mask(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval().requires_grad_(False)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)

    found, expected = by_tvm_and_torch(
        Called([lambda x: layer(x, src_mask=mask)]), torch.randn(2, 5, 8), tmp_path
    )

    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_bags_of_one_size(tmp_path: Path) -> None:
    network = torch.nn.EmbeddingBag(20, 6, mode="max").eval()

    found, expected = by_tvm_and_torch(network, torch.arange(12).reshape(3, 4), tmp_path)

    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_torch_cannot_decompose_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"net\.pt: expected a network of .* not implemented: .*cummax"):
        by_tvm_and_torch(Called([lambda x: x.cummax(1)[0]]), torch.randn(1, 2, 7, 8), tmp_path)


def by_tvm_and_torch(network: torch.nn.Module, x: torch.Tensor, folder: Path) -> tuple[Any, Any]:
    """What a network gives from its TorchScript file, and what it gives."""
    [found], [expected] = all_by_tvm_and_torch(network, x, folder)
    return found, expected


def all_by_tvm_and_torch(
    network: torch.nn.Module, x: torch.Tensor, folder: Path
) -> tuple[list[Any], list[Any]]:
    """The same of a network with several outputs."""
    tvm = load_tvm()
    from tvm.contrib import graph_executor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated
        torch.jit.trace(network, x, check_trace=False).save(folder / "net.pt")
    module, parameters, names = network_from(str(folder / "net.pt"))
    with quiet_builds(), tvm.transform.PassContext(opt_level=3):
        library = tvm.relay.build(module, target="llvm", params=parameters)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.set_input(next(iter(names)), x.numpy())
    executor.run()
    given = network(x)
    outputs = given if isinstance(given, tuple) else (given,)
    found = [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]
    return found, [each.detach().numpy() for each in outputs]
