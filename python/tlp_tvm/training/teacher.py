"""A trained model whose scores a smaller one learns to give (Hinton, Vinyals and Dean, 2015).

The labels of a list say which program is faster; a good model's scores also say by how much it is sure, and
on every platform, measured or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import safetensors.torch
import torch
from torch import Tensor

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import ModelFileError
from tlp_tvm.model.scoring import ScoringModel

IMITATION = 1.0
"""Weight of a squared difference of scores, beside the loss of the labels."""


@dataclass(frozen=True)
class Teacher:
    """What is imitated."""

    network: torch.nn.Module
    """(n, L, E) -> (n, P), in evaluation mode, heads in the order of the dataset's platforms."""
    digest: str
    """Of its weights."""

    @classmethod
    def of(cls, model: ScoringModel, data: MeasuredDataset, device: torch.device) -> Teacher:
        """Take a model as the teacher of one that is to be trained on a dataset.

        Raises:
            ModelFileError: it reads another layout, or scores other platforms.
        """
        platforms = tuple(platform.name for platform in data.platforms)
        if model.layout.digest != data.layout.digest or model.platforms != platforms:
            raise ModelFileError(
                f'model {model.name}: expected a teacher of the layout "{data.layout.name}" and of '
                f'{", ".join(platforms)}, found "{model.layout.name}" and {", ".join(model.platforms)}; '
                "choose a model of the same dataset"
            )
        weights = {name: t.cpu().contiguous() for name, t in model.network.state_dict().items()}
        digest = hashlib.sha256(safetensors.torch.save(weights)).hexdigest()
        return cls(model.to(str(device)).network, digest)

    @torch.no_grad()
    def scores(self, parts: Sequence[Tensor], heads: int) -> Tensor:
        """Its scores of a batch.

        Args:
            parts: (n_i, L_i, E) embeddings.
            heads: of the platforms.

        Returns:
            (n, P) float32; n is 0 for no parts.
        """
        if not parts:
            return torch.zeros(0, heads)
        return torch.cat([self.network(x) for x in parts]).float()
