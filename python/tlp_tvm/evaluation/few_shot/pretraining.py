"""Learning from sequences alone: primitives are hidden, and told from those around them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.model.tlp import TLP, Member, TLPSettings
from tlp_tvm.training.batches import epoch_of
from tlp_tvm.training.train_settings import TrainSettings

HIDDEN_SHARE = 0.3
"""Primitives that are hidden: half of them whole, of the other half all but their kind."""


def pretrain(
    data: MeasuredDataset,
    model: TLPSettings,
    settings: TrainSettings,
    *,
    device: torch.device,
    on_epoch: Callable[[int], None] = lambda epoch: None,
) -> dict[str, Tensor]:
    """Train a trunk without labels; the heads are left as they are drawn.

    Each member has a linear decoder while this lasts: the kinds by cross-entropy, the rest by squares.

    Args:
        data: programs; labels are not looked at.
        model: the network.
        settings: epochs, batches, rate and seed.
        device: where to train.
        on_epoch: called with how many epochs are done.

    Returns:
        The network's state.
    """
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = TLP(model).to(device)
        decoders = nn.ModuleList(nn.Linear(model.hidden, model.width) for _ in network.members).to(device)
        parameters = [*network.parameters(), *decoders.parameters()]
        optimizer = torch.optim.Adam(
            parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        network.train()
        for epoch in range(settings.epochs):
            seed = (settings.seed, epoch, 1)
            batches = list(epoch_of(data, settings.batch_programs, settings.list_programs, seed))
            for i, lists in enumerate(batches):
                progress = (epoch + i / len(batches)) / settings.epochs
                for group in optimizer.param_groups:
                    group["lr"] = settings.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))
                x, real = network.inputs(torch.from_numpy(data.features(np.concatenate(lists))).to(device))
                losses = [
                    _loss(member, decoder, x, real, model.one_hot)
                    for member, decoder in zip(network.members, decoders, strict=True)
                ]
                optimizer.zero_grad()
                torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(parameters, settings.gradient_clip)
                optimizer.step()
            on_epoch(epoch + 1)
    return {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}


def _loss(member: nn.Module, decoder: nn.Module, x: Tensor, real: Tensor, one_hot: int) -> Tensor:
    assert isinstance(member, Member)
    chance = torch.rand(real.shape, device=x.device)
    hidden = real & (chance < HIDDEN_SHARE)
    whole = real & (chance < HIDDEN_SHARE / 2)
    if not hidden.any():  # of very few primitives
        hidden = real
    shown = x.clone()
    shown[..., one_hot:] = shown[..., one_hot:].masked_fill(hidden.unsqueeze(-1), 0.0)
    shown[..., :one_hot] = shown[..., :one_hot].masked_fill(whole.unsqueeze(-1), 0.0)
    told = decoder(member.trunk(shown, real)[hidden])  # (R, E)
    truth = x[hidden]
    numbers = F.mse_loss(told[:, one_hot:], truth[:, one_hot:])
    kinds = torch.nonzero(whole[hidden])[:, 0]
    if not len(kinds):
        return numbers
    return numbers + F.cross_entropy(told[kinds, :one_hot], truth[kinds, :one_hot].argmax(-1))
