"""An exported network has a copy for the peers that read ONNX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tlp_tvm.beside.onnx_copy import onnx_of, torch_module


@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch warns of itself
def test_an_exported_network_is_copied_as_it_is_evaluated(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the extra `peers` is not installed")
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Dropout()
    ).eval()
    file, image = tmp_path / "network.pt2", torch.randn(1, 3, 8, 8)
    torch.export.save(torch.export.export(network, (image,)), file)
    inputs = {"x": image.numpy()}

    copy = onnx_of(file, inputs, tmp_path)

    module, arguments = torch_module(file, inputs)
    np.testing.assert_array_equal(module(*arguments).detach().numpy(), network(image).detach().numpy())
    nodes = {node.op_type: node for node in onnx.load(str(copy)).graph.node}
    assert "Conv" in nodes
    assert "Dropout" not in nodes
    norm = nodes.get("BatchNormalization")  # or it is in the weights
    assert not [each for each in getattr(norm, "attribute", ()) if each.name == "training_mode" and each.i]
