"""How a model is trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

import torch

from tlp_tvm.model.losses import Loss


class Precision(str, Enum):
    """Of the network's arithmetic in training; weights, losses and scores in use are always float32."""

    AUTO = "auto"
    """bfloat16 on a GPU that has it, float32 elsewhere."""
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"

    def on(self, device: torch.device) -> torch.dtype:
        """The type that multiplications have on a device."""
        if self is Precision.BFLOAT16:
            return torch.bfloat16
        has_it = self is Precision.AUTO and device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if has_it else torch.float32


@dataclass(frozen=True)
class TrainSettings:
    """How a model is trained; its shape is in `TLPSettings`."""

    loss: Loss = Loss.PAIRWISE
    epochs: int = 40
    learning_rate: float = 7e-4
    """At the start; it falls to zero along a cosine."""
    weight_decay: float = 1e-6
    gradient_clip: float = 0.5
    """Largest norm of the gradient."""
    batch_programs: int = 256
    """Approximate programs per batch, over all processes; batches consist of whole lists."""
    list_programs: int = 256
    """Larger tasks are cut into random lists of at most this."""
    average: float = 0.95
    """Share of the past in the moving average of the weights, a step; 0 keeps the last weights only."""
    patience: int = 0
    """Epochs without a better validation before training stops; 0 never stops it."""
    seed: int = 0
    precision: Precision = Precision.AUTO

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return {**asdict(self), "loss": self.loss.value, "precision": self.precision.value}
