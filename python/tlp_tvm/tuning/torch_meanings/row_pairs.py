"""Operators that look along an axis, or at pairs of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tlp_tvm.tuning.torch_meanings.places import part


def _median(x: Tensor, *how: Any) -> Any:
    """The lower of two."""
    x, axis, kept = (x, how[0] % x.dim(), how[1]) if how else (x.flatten(), 0, False)
    middle = (int(x.shape[axis]) - 1) // 2
    found = tuple(part(each, axis, middle, middle + 1) for each in torch.sort(x, axis))
    found = found if kept else tuple(each.squeeze(axis) for each in found)
    return found if how else found[0]


def _least_and_most(x: Tensor, axis: int | None, kept: bool) -> tuple[Tensor, Tensor]:
    axes = list(range(x.dim())) if axis is None else [axis]
    return x.amin(axes, kept), x.amax(axes, kept)


def _counted(x: Tensor, axes: list[int] | None) -> Tensor:
    found = x if x.dtype == torch.bool else x != 0
    return found.to(torch.int64).sum(list(range(x.dim())) if axes is None else axes)


def _bilinear(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    products = (x[..., :, None] * y[..., None, :]).flatten(-2)
    return functional.linear(products, weight.flatten(1), bias)


def _distances(x: Tensor, y: Tensor, order: float, _: int | None) -> Tensor:
    apart = torch.abs(x[..., :, None, :] - y[..., None, :, :])
    if order == 1:
        return apart.sum(-1)
    if math.isinf(order):
        return apart.amax(-1)
    return torch.sqrt((apart * apart).sum(-1)) if order == 2 else (apart**order).sum(-1) ** (1 / order)


def _bags(weight: Tensor, indices: Tensor, offsets: Tensor, *rest: Any) -> tuple[Tensor, None, None, None]:
    """Rows of a table, summed, averaged or the most of them, from each offset to the next one."""
    _, mode, _, factors, ends, *padding = rest
    begins = offsets[:-1] if ends else offsets
    count = int(indices.shape[0])
    places = torch.arange(count, dtype=offsets.dtype)
    behind = offsets[1:] if ends else torch.cat([offsets[1:], torch.full([1], count, dtype=offsets.dtype)])
    inside = (places >= begins[:, None]) & (places < behind[:, None])
    if padding and padding[0] is not None and padding[0] >= 0:
        inside = inside & (indices != padding[0])
    rows = functional.embedding(indices, weight)
    if mode == 2:
        nothing = torch.full([1], -math.inf, dtype=rows.dtype)
        most = torch.where(inside[..., None], rows, nothing).amax(1)
        return torch.where(most == nothing, torch.zeros([1], dtype=rows.dtype), most), None, None, None
    inside = inside.to(rows.dtype)
    summed = torch.matmul(inside, rows if factors is None else rows * factors[:, None])
    if mode == 1:
        summed = summed / torch.clamp(inside.sum(1, True), min=1.0)
    return summed, None, None, None


def _layer_norm(
    x: Tensor, shape: Sequence[int], _weight: None, _bias: None, epsilon: float, *_: Any
) -> Tensor:
    return functional.layer_norm(x, shape, torch.ones(shape), torch.zeros(shape), epsilon)


def _group_norm(x: Tensor, groups: int, _weight: None, _bias: None, epsilon: float, *_: Any) -> Tensor:
    channels = int(x.shape[1])
    return functional.group_norm(x, groups, torch.ones(channels), torch.zeros(channels), epsilon)


ROWS: dict[str, Callable[..., Any]] = {
    "_cdist_forward": _distances,
    "_embedding_bag": _bags,
    "aminmax": _least_and_most,
    "any": lambda x: x.flatten().any(0),
    "bilinear": _bilinear,
    "cdist": _distances,
    "count_nonzero": _counted,
    "embedding_bag": _bags,
    "group_norm": _group_norm,
    "layer_norm": _layer_norm,
    "max": lambda x, *how: (x.amax(*how), x.argmax(*how)),
    "median": _median,
    "min": lambda x, *how: (x.amin(*how), x.argmin(*how)),
    "sum": lambda x, *how: x.to(torch.int64).sum(*how[:2]),
    "var_mean": lambda x, axes, correction, kept: (
        torch.var(x, axes, correction=correction, keepdim=kept),
        torch.mean(x, axes, keepdim=kept),
    ),
}
