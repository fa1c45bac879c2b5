"""Operators, with which arguments, that TVM's importer of exported programs lacks or takes for others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

When = Callable[[Sequence[Any]], bool]
"""An operator's arguments, tensors without values among them."""


def _whole_numbers(given: Sequence[Any]) -> bool:
    return not given[0].dtype.is_floating_point


def _without_weight(given: Sequence[Any]) -> bool:
    return given[2] is None


def _several_with_gaps(given: Sequence[Any]) -> bool:
    """Several tensors of indices, and an axis left whole among them, which the importer takes one by one."""
    tensors = [each for each in given[1] if each is not None]
    whole = len(tensors) < len(given[1])
    return len(tensors) > 1 and whole and all(each.dtype != torch.bool for each in tensors)


def _uneven(given: Sequence[Any]) -> bool:
    """The nearest of a size that is no multiple, which it rounds in another way."""
    size, extents = given[1], [int(extent) for extent in given[0].shape[2:]]
    if size is None:
        return any(scale != int(scale) for scale in given[2])
    return any(int(new) % old for new, old in zip(size, extents, strict=True))


def _with_nothing(given: Sequence[Any]) -> bool:
    counts = [each.numel() for each in given[0]]
    return 0 in counts and any(counts)


def _out_of_order(given: Sequence[Any]) -> bool:
    """Another look at numbers that lie close together, but one in order at numbers in order."""
    x, size, strides = given[:3]
    usual = [math.prod(size[axis + 1 :]) for axis in range(len(size))]
    lying = x.permute(sorted(range(x.dim()), key=lambda axis: -x.stride(axis)))
    return bool(lying.is_contiguous()) and not (x.is_contiguous() and list(strides) == usual)


def _infinite(given: Sequence[Any]) -> bool:
    return isinstance(given[1], float) and math.isinf(given[1])


def _of_truths(given: Sequence[Any]) -> bool:
    """Truth values compared with each other, or with a number, which LLVM would compare as numbers."""
    kinds = [each.dtype for each in given[:2] if isinstance(each, torch.Tensor)]
    return kinds[:1] == [torch.bool] and set(kinds) == {torch.bool} and isinstance(given[0], torch.Tensor)


def _by_mask(given: Sequence[Any]) -> bool:
    return len(given[1]) == 1 and given[1][0] is not None and given[1][0].dtype == torch.bool


def _always(_: Sequence[Any]) -> bool:
    return True


KNOWN_BY_OTHERS: dict[str, When] = {
    **dict.fromkeys(
        [
            *(
                "_cdist_forward",
                "_embedding_bag",
                "_upsample_bilinear2d_aa",
                "adaptive_max_pool2d",
                "bilinear",
            ),
            *("cdist", "count_nonzero", "embedding_bag", "erfc", "exp2", "grid_sampler", "grid_sampler_2d"),
            *("heaviside", "im2col", "logaddexp", "rrelu", "unfold", "var_mean"),
        ],
        _always,
    ),
    "any": lambda given: len(given) == 1,
    "as_strided": _out_of_order,
    "avg_pool2d": lambda given: given[6] is not None,
    "cat": _with_nothing,
    "clamp": _whole_numbers,
    "clamp_max": _whole_numbers,
    "clamp_min": _whole_numbers,
    "convolution": lambda given: given[6] and given[0].dim() == 5,
    "eq": _of_truths,
    "full": _infinite,
    "full_like": _infinite,
    "group_norm": _without_weight,
    "index": _several_with_gaps,
    "index_put": _by_mask,
    "layer_norm": _without_weight,
    "min": lambda given: len(given) == 3,
    "mul": lambda given: isinstance(given[1], torch.Tensor) and _of_truths(given),
    "ne": _of_truths,
    "upsample_nearest2d": _uneven,
}
"""By operator; `torch_meanings` has what these are, or torch."""
