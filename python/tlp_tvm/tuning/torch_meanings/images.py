"""Operators of images: windows, and other sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tlp_tvm.tuning.torch_meanings.places import part


def _mean_of_windows(x: Tensor, kernel: list[int], *rest: Any) -> Tensor:
    how, divisor = list(rest[:-1]), float(rest[-1])
    how[-1] = True  # zeros around count
    sums: Tensor = functional.avg_pool2d(x, kernel, *how) * math.prod((*kernel, *kernel)[:2])
    return sums / divisor


def _most_of_parts(x: Tensor, size: Sequence[int]) -> tuple[Tensor, Tensor | None]:
    extents = [int(extent) for extent in x.shape[-2:]]
    if all(extent % parts == 0 for extent, parts in zip(extents, size, strict=True)):
        kernel = [extent // parts for extent, parts in zip(extents, size, strict=True)]
        return functional.max_pool2d(x, kernel, return_indices=True)
    for axis, parts in zip((x.dim() - 2, x.dim() - 1), size, strict=True):
        extent = int(x.shape[axis])
        ends = [(i * extent // parts, -(-(i + 1) * extent // parts)) for i in range(parts)]
        x = torch.stack([part(x, axis, begin, end).amax([axis]) for begin, end in ends], axis)
    return x, None


def _columns(
    x: Tensor, kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Tensor:
    """What a window sees at each of its places, (N, channels * taps, places), as `unfold` of images is."""
    x = functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    images, channels = int(x.shape[0]), int(x.shape[1])
    spans = [
        (int(extent) - spread * (taps - 1) - 1) // step * step + 1
        for extent, taps, spread, step in zip(x.shape[2:], kernel, dilation, stride, strict=True)
    ]
    seen = [
        part(part(x, 2, i * dilation[0], i * dilation[0] + spans[0], stride[0]), 3, j * dilation[1],
             j * dilation[1] + spans[1], stride[1])
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]  # fmt: skip
    return torch.stack(seen, 2).reshape(images, channels * math.prod(kernel), -1)


def _sizes(x: Tensor, given: Sequence[Any]) -> list[tuple[int, float]]:
    """Of both axes the new extent, and how many old numbers there are to a new one, as torch has it."""
    size, *scales = given
    if scales and isinstance(scales[0], list | tuple):
        scales = list(scales[0])
    known = [scale for scale in scales if scale is not None]
    extents = [int(extent) for extent in x.shape[2:]]
    size = size or [int(extent * scale) for extent, scale in zip(extents, known, strict=True)]
    steps = [1 / scale for scale in known] or [old / new for old, new in zip(extents, size, strict=True)]
    return list(zip(map(int, size), steps, strict=True))


def _nearest(x: Tensor, *given: Any) -> Tensor:
    for axis, (extent, step) in enumerate(_sizes(x, given), 2):
        places = (torch.arange(extent, dtype=torch.float32) * step).to(torch.int64)
        x = torch.index_select(x, axis, torch.clamp(places, max=int(x.shape[axis]) - 1))
    return x


def _smoothed(x: Tensor, size: Any, aligned: bool, *scales: Any) -> Tensor:
    """Linear in both axes; where the image shrinks, what lies between counts as well."""
    if aligned:
        raise NotImplementedError("an antialiased interpolation with aligned corners")
    (rows, down), (columns, across) = _sizes(x, (size, *scales))
    upright = torch.matmul(_shares(rows, int(x.shape[2]), down), x)
    return torch.matmul(upright, _shares(columns, int(x.shape[3]), across).transpose(0, 1))


def _shares(new: int, old: int, step: float) -> Tensor:
    """Of each new number, the shares of the old ones: (new, old)."""
    middles = (torch.arange(new, dtype=torch.float32) + 0.5)[:, None] * step
    apart = torch.abs(torch.arange(old, dtype=torch.float32) + 0.5 - middles) / max(step, 1.0)
    shares = torch.relu(1 - apart)
    return shares / shares.sum(1, True)


def _convolution(x: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Tensor:
    """A transposed one, as a convolution of an image with zeros between its numbers."""
    stride, padding, dilation, _, more, groups = how[:6]
    axes = x.dim() - 2
    around: list[int] = []
    for axis in range(axes):
        extent, taps = int(x.shape[2 + axis]), int(weight.shape[2 + axis])
        if stride[axis] > 1:
            apart = functional.pad(x.unsqueeze(3 + axis), [0, 0] * (axes - 1 - axis) + [0, stride[axis] - 1])
            x = part(apart.flatten(2 + axis, 3 + axis), 2 + axis, 0, (extent - 1) * stride[axis] + 1)
        edge = dilation[axis] * (taps - 1) - padding[axis]
        around = [edge, edge + more[axis], *around]
    inputs, outputs = int(weight.shape[0]), int(weight.shape[1])
    turned = weight.flip(list(range(2, 2 + axes))).reshape(groups, inputs // groups, *weight.shape[1:])
    turned = turned.transpose(1, 2).reshape(groups * outputs, inputs // groups, *weight.shape[2:])
    convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[axes - 1]
    return convolve(functional.pad(x, around), turned, bias, 1, 0, dilation, groups)


IMAGES: dict[str, Callable[..., Any]] = {
    "_upsample_bilinear2d_aa": _smoothed,
    "_convolution": _convolution,
    "adaptive_max_pool2d": _most_of_parts,
    "avg_pool2d": _mean_of_windows,
    "convolution": _convolution,
    "im2col": _columns,
    "upsample_nearest2d": _nearest,
}
