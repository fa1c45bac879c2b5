"""Weights that a training begins with, and which of them it leaves alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import safetensors.torch
from torch import Tensor

from tlp_tvm.model.tlp import TLP


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
