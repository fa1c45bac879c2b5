"""Operators of TorchScript that TVM's importer lacks compute what torch computes."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from exported import SHAPE, image
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.targets import quiet_builds
from tlp_tvm.ansor.networks.builtin import network_from


@pytest.mark.parametrize(
    ("padding", "kernel", "dilation", "groups"),
    [("valid", 3, 1, 1), ("same", 3, 1, 1), ("same", 4, 1, 1), ("same", (2, 3), 2, 3), ("valid", 3, 2, 3)],
)
def test_a_convolution_whose_padding_is_a_word(
    tmp_path: Path, padding: str, kernel: int | tuple[int, int], dilation: int, groups: int
) -> None:
    tvm = load_tvm()
    from tvm.contrib import graph_executor

    layer = torch.nn.Conv2d(3, 6, kernel, padding=padding, dilation=dilation, groups=groups).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated; torch warns of even kernels
        torch.jit.trace(layer, torch.zeros(SHAPE)).save(tmp_path / "net.pt")
        expected = layer(torch.from_numpy(image())).detach().numpy()

    module, parameters, [name] = network_from(str(tmp_path / "net.pt"))
    with quiet_builds(), tvm.transform.PassContext(opt_level=3):
        library = tvm.relay.build(module, target="llvm", params=parameters)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.set_input(name, image())
    executor.run()

    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, atol=1e-5)
