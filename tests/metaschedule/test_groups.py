"""Convolutions in groups, before MetaSchedule sees them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn

from test_prepared import prepared_alike
from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.loading.targets import target_of
from tlp_tvm.metaschedule.networks.builtin import relax_of, tasks_of

pytestmark = pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch's own


class Block(nn.Module):
    """A block of RegNet: groups between two convolutions, and a residual sum."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.widen, self.narrow = nn.Conv2d(6, 12, 1), nn.Conv2d(12, 12, 1)
        self.grouped, self.norm = nn.Conv2d(12, 12, 3, **how), nn.BatchNorm2d(12)
        self.norm.running_mean, self.norm.running_var = torch.randn(12), torch.rand(12) + 0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(1, 6, H, W) -> (1, 12, h, w)."""
        x = torch.relu(self.norm(self.grouped(torch.relu(self.widen(x)))))
        return self.narrow(x + torch.tanh(x))


def named(module: Any) -> list[str]:
    """The tasks of a network."""
    return [task.task_name for task in tasks_of(module, target_of("llvm -num-cores=2"))]


@torch.inference_mode()
@pytest.mark.parametrize(
    "how",
    [
        {"groups": 3, "padding": 1},
        {"groups": 4, "stride": 2, "padding": (0, 1), "bias": False},
        {"groups": 2, "dilation": (1, 2), "padding": 2, "stride": (2, 1)},
    ],
)
def test_groups_have_an_axis_and_stay_fused_with_what_follows(how: dict[str, Any]) -> None:
    torch.manual_seed(0)
    module = prepared_alike(Block(**how), torch.randn(1, 6, 11, 9))

    assert not re.search(r"groups=(?!1\b)", module.script())
    convolutions = [name for name in named(module) if "transpose" not in name]
    assert len(convolutions) == 3  # what follows one belongs to it
    (grouped,) = [name for name in convolutions if name.startswith("fused_conv2d_groups_add")]
    assert re.search(r"_relu\d*_tir_tanh_add\d*$", grouped)


@torch.inference_mode()
def test_groups_of_one_channel_and_of_other_numbers_stay() -> None:
    torch.manual_seed(0)
    assert not [
        name for name in named(prepared_alike(Block(groups=12), torch.randn(1, 6, 8, 8))) if "groups" in name
    ]
    doubles = Block(groups=3).eval().to(torch.float64)
    program = torch.export.export(doubles, (torch.randn(1, 6, 8, 8, dtype=torch.float64),))
    assert not [name for name in named(prepared(*relax_of(program))) if "groups" in name]
