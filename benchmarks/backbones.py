"""What mixes the primitives of a program in place of self-attention: for the ablation of the backbone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch.nn.functional as F
from torch import Tensor, nn

from tlp_tvm.model import tlp
from tlp_tvm.model.tlp import SelfAttention, TLPSettings


class EncoderLayer(nn.Module):
    """A transformer's encoder layer: self-attention, then two linear layers, each with a residual."""

    WIDER = 4
    """Of its inner layer, as in Vaswani et al., "Attention Is All You Need", 2017."""

    def __init__(self, settings: TLPSettings) -> None:
        super().__init__()
        hidden = settings.hidden
        self.attention = SelfAttention(settings)
        self.norm = nn.LayerNorm(hidden)
        self.wide = nn.Linear(hidden, self.WIDER * hidden)
        self.narrow = nn.Linear(self.WIDER * hidden, hidden)

    def forward(self, h: Tensor, bias: Tensor) -> Tensor:
        """(N, L, H), (N, 1, 1, L) -> (N, L, H)."""
        h = self.attention(h, bias)
        mixed: Tensor = h + self.narrow(F.relu(self.wide(self.norm(h))))
        return mixed


class Recurrent(nn.Module):
    """An LSTM over the primitives in their order, with a residual; padding comes last and is not counted."""

    def __init__(self, settings: TLPSettings) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(settings.hidden)
        self.lstm = nn.LSTM(settings.hidden, settings.hidden, batch_first=True)

    def forward(self, h: Tensor, bias: Tensor) -> Tensor:
        """(N, L, H), (N, 1, 1, L) -> (N, L, H)."""
        mixed: Tensor = h + self.lstm(self.norm(h))[0]
        return mixed


class Nothing(nn.Module):
    """No primitive sees another: a sum over primitives of what each says alone."""

    def __init__(self, settings: TLPSettings) -> None:
        super().__init__()

    def forward(self, h: Tensor, bias: Tensor) -> Tensor:
        """(N, L, H), (N, 1, 1, L) -> (N, L, H)."""
        return h


@contextmanager
def backbone(layer: type[nn.Module] | None) -> Iterator[None]:
    """Networks that are made meanwhile have this layer; None for their own."""
    with patch.object(tlp, "SelfAttention", layer or SelfAttention):
        yield
