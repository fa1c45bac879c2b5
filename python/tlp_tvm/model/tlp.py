"""TLP scores tensor programs as sequences of schedule primitives; with several heads it is MTL-TLP.

Zhai et al., "TLP: A Deep Learning-Based Cost Model for Tensor Program Tuning", ASPLOS 2023. With
`faithful=True` this is the published network, weaknesses included. Otherwise padding is masked, raw numbers
are scaled, and layers are normalised. Written for TorchScript.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.setting_checks import check_entries, check_settings

BACKBONE = "self-attention"
"""The part that mixes the primitives of a program, as model files name it. There were others: no model or
table used them."""

PUBLISHED: dict[str, Any] = {"hidden": 256, "attention_heads": 8}
"""Settings of the published network that differ from ours."""


@dataclass(frozen=True)
class TLPSettings:
    """The settings that fix the network's shape; saved with every checkpoint."""

    length: int
    """Rows L of an embedding."""
    width: int
    """Columns E of an embedding."""
    one_hot: int
    """Leading columns of a row: its kind, one-hot."""
    heads: int = 1
    """Platforms, one head each."""
    raw_numbers: bool = False
    """The layout writes unscaled numbers; the model scales them."""
    hidden: int = 64
    """Width of the trunk; the paper's is 256."""
    attention_heads: int = 4
    """The paper has 8, for 256 columns."""
    layers: int = 1
    """Of self-attention."""
    members: int = 1
    """Networks trained side by side; their scores are averaged."""
    dropout: float = 0.0
    positions: bool = False
    """Whether primitives know their positions in the sequence, beside the stages and loops they name."""
    faithful: bool = False
    """The published network: it attends to padding and sums its scores, has raw numbers and no norm."""

    def __post_init__(self) -> None:
        """Raises ValueError if a setting is out of range."""
        check_settings(vars(self))

    @classmethod
    def of_layout(cls, layout: FeatureLayout, heads: int, **options: Any) -> TLPSettings:
        """Settings for embeddings of a layout; `options` are the fields that the layout leaves open."""
        if options.get("faithful", False):
            options = PUBLISHED | options
        return cls(
            length=layout.length,
            width=layout.width,
            one_hot=len(layout.kinds),
            heads=heads,
            raw_numbers=layout.numbers == "raw",
            **options,
        )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TLPSettings:
        """The inverse of `to_dict`.

        Raises:
            ValueError: a field is missing, unknown or invalid.
        """
        check_entries(values)
        if values["backbone"] != BACKBONE:
            raise ValueError(f"backbone: expected {BACKBONE}, found {values['backbone']!r}")
        return cls(**{name: value for name, value in values.items() if name != "backbone"})

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        values = asdict(self)
        shape = {name: values.pop(name) for name in ("length", "width", "one_hot", "heads", "raw_numbers")}
        return {**shape, "backbone": BACKBONE, **values}  # in the order of the files that there are


def _norm(settings: TLPSettings) -> nn.Module:
    return nn.Identity() if settings.faithful else nn.LayerNorm(settings.hidden)


def _kept_attention(qkv: Tensor, bias: Tensor, dropout: float) -> Tensor:
    """Attention that keeps its weights for the gradient: (3, N, A, L, D), (N, 1, 1, L) -> (N, A, L, D).

    torch's fused attention recomputes them from their logarithms. With raw numbers beyond 10^7, as in GPU
    logs, these are so large that rounding alone overflows the exponential.
    """
    logits = qkv[0] @ qkv[1].transpose(-1, -2) * float(qkv.shape[-1]) ** -0.5 + bias
    return F.dropout(torch.softmax(logits, dim=-1), dropout) @ qkv[2]


class SelfAttention(nn.Module):
    """Multi-head self-attention with a residual."""

    def __init__(self, settings: TLPSettings) -> None:
        super().__init__()
        self.attention_heads = settings.attention_heads
        self.dropout = settings.dropout
        self.raw = settings.faithful
        self.norm = _norm(settings)
        self.query_key_value = nn.Linear(settings.hidden, 3 * settings.hidden)
        self.out = nn.Linear(settings.hidden, settings.hidden)

    def forward(self, h: Tensor, bias: Tensor) -> Tensor:
        """Mix the primitives of each program: (N, L, H), (N, 1, 1, L) added to the attention -> (N, L, H)."""
        n, rows, hidden = h.shape
        qkv = self.query_key_value(self.norm(h))
        qkv = qkv.view(n, rows, 3, self.attention_heads, hidden // self.attention_heads)
        qkv = qkv.permute(2, 0, 3, 1, 4)  # (3, N, A, L, H / A)
        dropout = self.dropout if self.training else 0.0
        if self.raw and self.training:
            mixed = _kept_attention(qkv, bias, dropout)
        else:
            mixed = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], attn_mask=bias, dropout_p=dropout)
        mixed = mixed.transpose(1, 2).reshape(n, rows, hidden)  # (N, L, H)
        return h + F.dropout(self.out(mixed), self.dropout, self.training)


class Residual(nn.Module):
    """A linear layer with a residual."""

    def __init__(self, settings: TLPSettings) -> None:
        super().__init__()
        self.linear = nn.Linear(settings.hidden, settings.hidden)

    def forward(self, h: Tensor) -> Tensor:
        """(N, L, H) -> (N, L, H)."""
        return h + F.relu(self.linear(h))


def _widen(settings: TLPSettings) -> nn.Sequential:
    """E -> H; the published steps are 64, 128, 256 for H = 256."""
    hidden = settings.hidden
    widths = [hidden // 4, hidden // 2, hidden] if settings.faithful else [hidden, hidden]
    layers: list[nn.Module] = []
    for before, after in zip([settings.width, *widths], widths, strict=False):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers)


def _head(hidden: int) -> nn.Sequential:
    """H -> 1 for every primitive; the published steps are 128, 64, 1 for H = 256."""
    return nn.Sequential(
        nn.Linear(hidden, hidden // 2),
        nn.ReLU(),
        nn.Linear(hidden // 2, hidden // 4),
        nn.ReLU(),
        nn.Linear(hidden // 4, 1),
    )


def _initialise(module: nn.Module) -> None:
    """He initialisation for layers under ReLU; with torch's own, a deep stack starts on a plateau."""
    if isinstance(module, nn.Linear):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.zeros_(module.bias)
        if module.out_features == 1:
            module.weight.data.mul_(0.1)  # scores start near each other


class Member(nn.Module):
    """One network from embeddings to scores; a model averages one or more."""

    def __init__(self, settings: TLPSettings) -> None:
        super().__init__()
        self.dropout = settings.dropout
        self.widen = _widen(settings)
        rows = settings.length if settings.positions else 0
        self.positions = nn.Parameter(0.02 * torch.randn(rows, settings.hidden))
        self.layers = nn.ModuleList(SelfAttention(settings) for _ in range(settings.layers))
        self.residuals = nn.Sequential(Residual(settings), Residual(settings))
        self.norm = _norm(settings)
        self.heads = nn.ModuleList(_head(settings.hidden) for _ in range(settings.heads))
        if not settings.faithful:
            self.apply(_initialise)

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """(N, L, E), (N, L) true for rows that are primitives -> (N, P)."""
        h = self.trunk(x, real)  # (N, L, H)
        h = F.dropout(h, self.dropout, self.training)
        # Summed head by head: in one sum, the number of heads would change the last bits of each.
        scores = [head(h).squeeze(-1).masked_fill(~real, 0.0).sum(1) for head in self.heads]  # P of (N,)
        return torch.stack(scores, dim=-1)

    def of_head(self, x: Tensor, real: Tensor, head: int) -> Tensor:
        """One column of `forward`, in evaluation: (N,)."""
        scores: Tensor = self.heads[head](self.trunk(x, real)).squeeze(-1)
        return scores.masked_fill(~real, 0.0).sum(1)

    def trunk(self, x: Tensor, real: Tensor) -> Tensor:
        """Input of all heads: (N, L, E), (N, L) true for rows that are primitives -> (N, L, H)."""
        h = self.widen(x)  # (N, L, H)
        if self.positions.shape[0] > 0:
            h = h + self.positions[: h.shape[1]]
        # Added to the attention to padding; finite, so that an empty program gives no NaN.
        bias = torch.zeros_like(real, dtype=h.dtype).masked_fill(~real, -1e9)[:, None, None, :]
        for layer in self.layers:
            h = layer(h, bias)
        normed: Tensor = self.norm(self.residuals(h))
        return normed


class TLP(nn.Module):
    """(N, L, E) float32 embeddings -> (N, P) scores, one per platform; higher is better.

    The score of a program depends on nothing else in its batch. Rows of zeros are padding.
    """

    def __init__(self, settings: TLPSettings) -> None:
        super().__init__()
        self.one_hot = settings.one_hot
        self.scale_numbers = settings.raw_numbers and not settings.faithful
        self.masked = not settings.faithful
        self.members = nn.ModuleList(Member(settings) for _ in range(settings.members))

    @classmethod
    def with_weights(cls, settings: TLPSettings, weights: dict[str, Tensor]) -> TLP:
        """A network in evaluation mode over existing weights, which it shares; draws no random numbers."""
        with torch.device("meta"):
            network = cls(settings)
        network.load_state_dict(weights, assign=True)
        network.eval()
        return network

    def forward(self, x: Tensor) -> Tensor:
        """(N, L, E) -> (N, P), the mean of the members."""
        return self.of_members(x).mean(0)

    def of_members(self, x: Tensor) -> Tensor:
        """(N, L, E) -> (members, N, P): each member is trained on its own."""
        x, real = self.inputs(x)
        return torch.stack([member(x, real) for member in self.members])

    def of_head(self, x: Tensor, head: int) -> Tensor:
        """One column of `forward`, in evaluation: (N,). With three heads, a fifth less work."""
        x, real = self.inputs(x)
        members = [cast(Member, member) for member in self.members]
        return torch.stack([member.of_head(x, real, head) for member in members]).mean(0)

    def inputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Input of the members: (N, L, E) cut to the longest program, and (N, L) true for real rows."""
        real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)  # (N, L)
        if self.masked:
            real = (x != 0).any(-1)
            x, real = self.without_padding(x, real)
        if self.scale_numbers:
            numbers = x[:, :, self.one_hot :]
            numbers = torch.sign(numbers) * torch.log1p(numbers.abs())
            x = torch.cat([x[:, :, : self.one_hot], numbers], dim=-1)
        return x, real

    def without_padding(self, x: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Cut the rows that are padding in every program of the batch."""
        rows = torch.arange(1, x.shape[1] + 1, device=x.device) * real.any(0)
        longest = max(int(rows.max()), 1)
        return x[:, :longest], real[:, :longest]
