"""What operators of attention, and of whole layers with it, are in terms of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def _shared_heads(query: Tensor, key: Tensor, value: Tensor, mask: Any, *rest: Any) -> Tensor:
    """Scaled products of which several heads share a key and a value."""
    times = query.shape[-3] // key.shape[-3]
    key, value = (each.repeat_interleave(times, -3) for each in (key, value))
    dropout, causal, scale = rest[:3]
    return functional.scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale=scale)


def _attention_of_heads(
    query: Tensor, key: Tensor, value: Tensor, width: int, heads: int, *rest: Any
) -> tuple[Tensor, Tensor]:
    """What `nn.MultiheadAttention` is in inference, with one matrix for queries, keys and values."""
    weight, bias, out_weight, out_bias, mask, _, averaged, kind = rest
    parts = zip((query, key, value), weight.split(width), bias.split(width), strict=True)
    apart = [
        functional.linear(x, w, b).reshape(*x.shape[:2], heads, width // heads).transpose(1, 2)
        for x, w, b in parts
    ]
    scores = torch.matmul(apart[0] * (width // heads) ** -0.5, apart[1].transpose(2, 3))
    if mask is not None:
        mask = mask[:, None, None] if kind == 1 else mask
        scores = scores.masked_fill(mask != 0, float("-inf"))
    shares = torch.softmax(scores, -1)
    joined = torch.matmul(shares, apart[2]).transpose(1, 2).reshape(query.shape)
    return functional.linear(joined, out_weight, out_bias), shares.mean(1) if averaged else shares


def _encoder_layer(x: Tensor, width: int, heads: int, *rest: Any) -> Tensor:
    """What `nn.TransformerEncoderLayer` is in inference."""
    attention, (gelu, norm_first, epsilon), norms = rest[:4], rest[4:7], rest[7:11]
    first, second, (mask, kind) = rest[11:13], rest[13:15], rest[15:17]

    def attended(x: Tensor) -> Tensor:
        return _attention_of_heads(x, x, x, width, heads, *attention, mask, False, True, kind)[0]

    def fed(x: Tensor) -> Tensor:
        wide = functional.linear(x, *first)
        return functional.linear(functional.gelu(wide) if gelu else torch.relu(wide), *second)

    def normed(x: Tensor, which: int) -> Tensor:
        weight, bias = norms[2 * which : 2 * which + 2]
        return functional.layer_norm(x, (width,), weight, bias, epsilon)

    if norm_first:
        x = x + attended(normed(x, 0))
        return x + fed(normed(x, 1))
    x = normed(x + attended(x), 0)
    return normed(x + fed(x), 1)


ATTENTION: dict[str, Callable[..., Any]] = {
    "_native_multi_head_attention": _attention_of_heads,
    "_transformer_encoder_layer_fwd": _encoder_layer,
    "scaled_dot_product_attention": _shared_heads,
}
