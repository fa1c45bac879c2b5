"""Initial weights of a training, and which of them stay fixed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import safetensors.torch
from torch import Tensor

from tlp_tvm.model.tlp import TLP

if TYPE_CHECKING:
    from tlp_tvm.training.train_settings import TrainSettings

FEW_STEPS = 300
"""Steps that a training on few labels makes at least, whatever its epochs."""

FINETUNE_RATE = 2e-4
"""At the start of a training of weights that were trained before: there is something to lose."""


@dataclass(frozen=True)
class Start:
    """Where a training begins."""

    weights: Mapping[str, Tensor]
    """The whole state of the network."""
    fixed: frozenset[str] = frozenset()
    """Names of the weights that are not trained."""

    @cached_property
    def digest(self) -> str:
        """Names the weights and which are fixed."""
        data = safetensors.torch.save(
            {name: t.cpu().contiguous().clone() for name, t in self.weights.items()}
        )
        return hashlib.sha256(data + "\n".join(sorted(self.fixed)).encode()).hexdigest()

    def put_into(self, network: TLP) -> None:
        """Copy the weights into a network that is about to be trained."""
        network.load_state_dict(dict(self.weights))
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(name not in self.fixed)


def long_enough(settings: TrainSettings, programs: int) -> TrainSettings:
    """The same with enough epochs that few programs make `FEW_STEPS` steps too."""
    steps = max(1, round(programs / settings.batch_programs))
    return replace(settings, epochs=max(settings.epochs, -(-FEW_STEPS // steps)))
