"""Convolutions in Winograd's way: which, and that they compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tlp_tvm.metaschedule.graph.fusing import fused, weights_of
from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.graph.winograd import winograd_products
from tlp_tvm.metaschedule.loading.targets import target_of
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import relax_of, tasks_of
from tlp_tvm.metaschedule.networks.operator_profile import functions_of

pytestmark = pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch's own
TARGET = "llvm -num-cores=2"


def prepared_of(module: nn.Module, image: torch.Tensor) -> Any:
    return prepared(*relax_of(torch.export.export(module.eval(), (image,))))


def functions(module: Any) -> list[str]:
    return [str(name) for name in functions_of(fused(module, target_of(TARGET)))]


def in_tiles_of(tile: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd_products, "tile_for", lambda *_: tile)


@torch.inference_mode()
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize(
    ("channels", "shape", "padding"),
    [
        ((16, 32), (1, 12, 12), 1),
        ((6, 5), (2, 9, 7), 1),
        ((8, 3), (1, 7, 11), 0),
        ((3, 16), (1, 5, 13), (0, 2)),
        ((4, 4), (1, 3, 3), (2, 1)),
    ],
)
def test_a_convolution_computes_the_same(
    tile: int,
    channels: tuple[int, int],
    shape: tuple[int, int, int],
    padding: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(0)
    in_tiles_of(tile, monkeypatch)
    network = nn.Sequential(nn.Conv2d(*channels, 3, padding=padding), nn.ReLU())
    image = torch.randn(shape[0], channels[0], *shape[1:])
    module, target = prepared_of(network, image), target_of(TARGET)

    library = end_to_end.compiled(module, {}, target)
    (found,) = end_to_end.run_once(library, {"x": image.numpy()}, target)

    assert {"winograd_entering", "winograd_given"} <= set(functions(module))
    np.testing.assert_allclose(found, network(image).numpy(), rtol=1e-4, atol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize(
    "how", [{"stride": 2}, {"dilation": 2}, {"groups": 2}, {"kernel_size": 5}, {"kernel_size": (3, 1)}]
)
def test_other_convolutions_stay(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles_of(2, monkeypatch)
    module = prepared_of(nn.Conv2d(8, 8, **{"kernel_size": 3, **how}), torch.randn(1, 8, 12, 12))

    assert not [name for name in functions(module) if "winograd" in name]


@torch.inference_mode()
def test_only_where_it_is_faster_and_for_a_cpu() -> None:
    network = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 4, 3, padding=1))
    module = prepared_of(network, torch.randn(1, 64, 28, 28))

    assert [name for name in functions(module) if "winograd" in name] == [
        "winograd_entering",
        "winograd_given",
    ]
    for_gpu = fused(module, target_of("cuda -arch=sm_80", here=False))
    assert not [name for name in functions_of(for_gpu) if "winograd" in str(name)]


@torch.inference_mode()
def test_the_products_are_a_task_with_weights_of_its_own_order() -> None:
    module = prepared_of(nn.Conv2d(64, 64, 3, padding=1), torch.randn(1, 64, 28, 28))

    tasks = {str(task.task_name): task for task in tasks_of(module, target_of(TARGET))}

    assert not [name for name in tasks if "winograd" in name]
    (products,) = [task for name, task in tasks.items() if "matmul" in name]
    assert weights_of(products.dispatched[0]) == (1,)
