"""Operators that say which numbers stand where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def part(x: Tensor, axis: int, begin: int, end: int, step: int = 1) -> Tensor:
    """What lies between two places of an axis.

    Args:
        x: any tensor.
        axis: counted from the first.
        begin: first place.
        end: behind the last one.
        step: from one to the next.
    """
    places = (*[slice(None)] * axis, slice(begin, end, step))
    return x[places]


def _windows(x: Tensor, axis: int, size: int, step: int) -> Tensor:
    axis %= x.dim()
    covered = (int(x.shape[axis]) - size) // step * step + 1
    return torch.stack([part(x, axis, i, i + covered, step) for i in range(size)], -1)


def _wrapped(x: Tensor, around: Sequence[int], *_: Any) -> Tensor:
    for i in range(len(around) // 2):
        axis = x.dim() - 1 - i
        extent, before, behind = int(x.shape[axis]), around[2 * i], around[2 * i + 1]
        parts = [part(x, axis, extent - before, extent)] if before else []
        x = torch.cat([*parts, x, *([part(x, axis, 0, behind)] if behind else [])], axis)
    return x


def _diagonal(x: Tensor, offset: int, first: int, second: int) -> Tensor:
    first, second = first % x.dim(), second % x.dim()
    x = x.permute([i for i in range(x.dim()) if i not in (first, second)] + [first, second])
    rows, columns = (int(extent) for extent in x.shape[-2:])
    begin, count = (offset, columns - offset) if offset >= 0 else (-offset * columns, rows + offset)
    count = min(count, rows, columns)
    return part(x.flatten(-2), x.dim() - 2, begin, begin + (count - 1) * (columns + 1) + 1, columns + 1)


def _columns_first(tensors: Sequence[Tensor], _: str) -> list[Tensor]:
    grids = torch.meshgrid(tensors[1], tensors[0], *tensors[2:], indexing="ij")
    return [grids[1], grids[0], *grids[2:]]


def _picked(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """What several tensors of indices, and axes left whole between them, pick out."""
    taken = [axis for axis, each in enumerate(indices) if each is not None]
    whole = [axis for axis in range(x.dim()) if axis not in taken]
    tensors = [each for each in indices if each is not None]
    together = torch.broadcast_tensors(*tensors)  # type: ignore[no-untyped-call]
    picked, axes = x.permute([*taken, *whole])[together], list(range(together[0].dim()))
    if taken != list(range(taken[0], taken[0] + len(taken))):
        return picked
    before = [len(axes) + i for i in range(taken[0])]
    return picked.permute([*before, *axes, *(len(axes) + i for i in range(taken[0], len(whole)))])


def _strided(x: Tensor, size: Sequence[int], strides: Sequence[int], begin: int | None) -> Tensor:
    """Of a tensor whose numbers lie close together, in whatever order of its axes."""
    apart = x.stride()
    lying = x.permute(sorted(range(x.dim()), key=lambda axis: -apart[axis]))
    places = torch.full([1] * len(size), begin or 0, dtype=torch.int64)
    for axis, (extent, stride) in enumerate(zip(size, strides, strict=True)):
        shape = [1] * axis + [extent] + [1] * (len(size) - 1 - axis)
        places = places + (torch.arange(extent, dtype=torch.int64) * stride).reshape(shape)
    return torch.index_select(lying.reshape(-1), 0, places.reshape(-1)).reshape(list(size))


def _joined(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Without those of no numbers, whose axes torch does not count; caches of decoders begin with one."""
    tensors = [each for each in tensors if each.numel()]
    return torch.cat(tensors, axis) if len(tensors) > 1 else tensors[0]


def _put(x: Tensor, indices: Sequence[Tensor], values: Any, add: bool) -> Tensor:
    """One value wherever a mask says so."""
    [mask] = indices
    values = torch.full([1], values) if isinstance(values, int | float) else values
    if values.numel() != 1:
        raise NotImplementedError("several values by a mask")
    mask = mask.reshape([*mask.shape, *[1] * (x.dim() - mask.dim())])
    value = values.reshape([1] * x.dim()).to(x.dtype)
    return torch.where(mask, x + value if add else value, x)


PLACES: dict[str, Callable[..., Any]] = {
    "as_strided": _strided,
    "cat": _joined,
    "diagonal": _diagonal,
    "full": lambda size, value, kind, *_: torch.zeros(size, dtype=kind) + value,
    "full_like": lambda x, value, *_: torch.zeros_like(x) + value,
    "index": _picked,
    "index_put": _put,
    "meshgrid": _columns_first,
    "pad": _wrapped,
    "unfold": _windows,
}
