"""Operators that work number by number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def _mish(x: Tensor) -> Tensor:
    """X tanh(log(1 + exp(x))) without a logarithm; from 20 on it is x."""
    grown = torch.exp(torch.clamp(x, max=20.0))
    part = grown * (grown + 2)
    return x * (part / (part + 2))


def _finite(x: Tensor, nan: float | None, high: float | None, low: float | None) -> Tensor:
    ends = torch.finfo(x.dtype)
    low, high = (ends.min if low is None else low), (ends.max if high is None else high)
    return torch.where(torch.isnan(x), torch.full_like(x, nan or 0.0), torch.clamp(x, low, high))


def _angle(y: Tensor, x: Tensor) -> Tensor:
    turned = torch.atan(y / torch.where(x == 0, torch.ones_like(x), x))
    left = torch.where(y < 0, turned - math.pi, turned + math.pi)
    return torch.where(x == 0, torch.sign(y) * (math.pi / 2), torch.where(x < 0, left, turned))


def _step(x: Tensor, middle: Tensor) -> Tensor:
    return torch.where(x == 0, middle.to(x.dtype), (x > 0).to(x.dtype))


def _clamped(x: Tensor, low: Any, high: Any) -> Tensor:
    for bound, larger in ((low, torch.maximum), (high, torch.minimum)):
        if isinstance(bound, int | float):
            x = larger(x, torch.full([1], bound, dtype=x.dtype))
        elif bound is not None:
            x = larger(x, bound.to(x.dtype))
    return x


def _quotient(x: Tensor, y: Any, _: str) -> Tensor:
    """Without its fraction."""
    return torch.trunc(x / y).to(torch.result_type(x, y))


def _rounded(x: Tensor, decimals: int) -> Tensor:
    return torch.round(x * 10.0**decimals) / 10.0**decimals


def _sum_of_powers(x: Tensor, y: Tensor) -> Tensor:
    """log(exp(x) + exp(y)); the difference of two equal infinities is none."""
    other = torch.maximum(x, y) + torch.log(1 + torch.exp(-torch.abs(x - y)))
    return torch.where(x == y, x + math.log(2), other)


def _same_truths(x: Tensor, y: Any) -> Tensor:
    if isinstance(y, Tensor):
        return torch.logical_not(torch.logical_xor(x, y))
    return x if y == 1 else torch.logical_not(x) if y == 0 else torch.logical_and(x, torch.logical_not(x))


NUMBERS: dict[str, Callable[..., Any]] = {
    "acosh": lambda x: torch.log(x + torch.sqrt(x * x - 1)),
    "add": lambda x, y, factor: x + y * factor,
    "asinh": lambda x: torch.sign(x) * torch.log(torch.abs(x) + torch.sqrt(x * x + 1)),
    "atan2": _angle,
    "atanh": lambda x: torch.log((1 + x) / (1 - x)) / 2,
    "clamp": _clamped,
    "clamp_max": lambda x, high: _clamped(x, None, high),
    "clamp_min": lambda x, low: _clamped(x, low, None),
    "div": _quotient,
    "eq": _same_truths,
    "erfc": lambda x: 1 - torch.erf(x),
    "exp2": lambda x: torch.exp(x * math.log(2)),
    "expm1": lambda x: torch.exp(x) - 1,
    "heaviside": _step,
    "lerp": lambda x, y, part: x + (y - x) * part,
    "logaddexp": _sum_of_powers,
    "mish": _mish,
    "mul": torch.logical_and,
    "nan_to_num": _finite,
    "ne": lambda x, y: torch.logical_not(_same_truths(x, y)),
    "round": _rounded,
    "rrelu": lambda x, low, high, *_: functional.leaky_relu(x, (low + high) / 2),
}
