"""A new head on a trained network: it starts as the mean of the existing heads.

Heads are not linear, so the mean of their weights is no mean of theirs. The new head is fitted to what the
old ones say of primitives, on average; that needs programs and no label.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.model.scoring import BATCH
from tlp_tvm.model.tlp import TLP, Member, TLPSettings

MOST_PROGRAMS = 4096
"""Programs whose primitives the new head is fitted to."""

STEPS = 600
ROWS = 2048
"""Primitives a step."""

LEARNING_RATE = 3e-3


def with_new_head(
    settings: TLPSettings,
    weights: Mapping[str, Tensor],
    data: MeasuredDataset,
    *,
    seed: int = 0,
    device: torch.device | None = None,
) -> tuple[TLPSettings, dict[str, Tensor], frozenset[str]]:
    """Add a head, the last one; all other weights stay bit for bit.

    Args:
        settings: of the network that there is.
        weights: its state.
        data: programs, in the network's layout; labels are not looked at.
        seed: of the programs that are taken and of their order.
        device: where to work; the CPU when None.

    Returns:
        The settings and the weights with the new head, and the names of the weights that are not its own.
    """
    place = device or torch.device("cpu")
    network = TLP.with_weights(settings, {name: tensor.to(place) for name, tensor in weights.items()})
    rng = np.random.default_rng(seed)
    programs = np.sort(rng.permutation(len(data))[:MOST_PROGRAMS])
    grown = {name: tensor.detach().clone() for name, tensor in weights.items()}
    for i, member in enumerate(network.members):
        assert isinstance(member, Member)
        primitives, means = _seen_by_heads(network, member, data, programs, place)
        head = _fitted(member, primitives, means, rng)
        prefix = f"members.{i}.heads.{settings.heads}."
        grown |= {prefix + name: tensor.detach().cpu().clone() for name, tensor in head.state_dict().items()}
    return replace(settings, heads=settings.heads + 1), grown, frozenset(weights)


def _seen_by_heads(
    network: TLP, member: Member, data: MeasuredDataset, programs: NDArray[np.int64], device: torch.device
) -> tuple[Tensor, Tensor]:
    """(R, H) what a member's heads read of each primitive, and (R,) the mean of what they say."""
    primitives, means = [], []
    with torch.inference_mode():
        for begin in range(0, len(programs), BATCH):
            features = data.features(programs[begin : begin + BATCH])
            x, real = network.inputs(torch.from_numpy(features).to(device))
            h = member.trunk(x, real)[real]  # (R, H)
            primitives.append(h)
            means.append(torch.cat([head(h) for head in member.heads], dim=-1).mean(-1))
    return torch.cat(primitives).clone(), torch.cat(means).clone()  # clones can be trained on


def _fitted(member: Member, primitives: Tensor, means: Tensor, rng: np.random.Generator) -> nn.Module:
    """A head of the member's shape, from a copy of its first one to the mean of all."""
    head = copy.deepcopy(member.heads[0]).requires_grad_(True)
    if len(member.heads) == 1:
        return head
    scale = means.std().clamp(min=1e-6)
    optimizer = torch.optim.Adam(head.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        rows = torch.from_numpy(rng.integers(len(means), size=ROWS)).to(means.device)
        loss = F.mse_loss(head(primitives[rows])[:, 0] / scale, means[rows] / scale)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return head
