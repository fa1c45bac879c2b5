"""Of which arguments TVM's importer of TorchScript makes another operator than torch has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Given = Sequence[Any]
KindOf = Callable[[Any], str]

When = Callable[[Given, KindOf], bool]
"""An operator's arguments, as numbers, lists, None and expressions, and what tells the type of one."""


def _along_axis(given: Given, _: KindOf) -> bool:
    return len(given) == 3


def _whole_numbers(given: Given, kind_of: KindOf) -> bool:
    return not all(isinstance(bound, int | float | None) for bound in given[1:]) or "int" in kind_of(given[0])


def _without_weight(given: Given, _: KindOf) -> bool:
    return given[2] is None


def _by_mask(given: Given, kind_of: KindOf) -> bool:
    return len(given[1]) == 1 and kind_of(given[1][0]) == "bool"


MISREAD: dict[str, When] = {
    "_convolution": lambda given, _: bool(given[6]) and max(given[5]) > 1,
    "add": lambda given, _: len(given) > 2 and given[2] != 1,
    "avg_pool2d": lambda given, _: given[6] is not None,
    "clamp": _whole_numbers,
    "clamp_max": _whole_numbers,
    "clamp_min": _whole_numbers,
    "div": lambda given, _: given[2:3] == ["trunc"],
    "group_norm": _without_weight,
    "index_put": _by_mask,
    "layer_norm": _without_weight,
    "lerp": lambda given, _: isinstance(given[2], float),
    "max": _along_axis,
    "meshgrid": lambda given, _: given[1:2] == ["xy"],
    "min": _along_axis,
    "pad": lambda given, _: given[2] == "circular",
    "round": lambda given, _: len(given) > 1,
    "scaled_dot_product_attention": lambda given, _: bool(given[7:8] == [True]),
    "sum": lambda given, kind_of: kind_of(given[0]) == "bool",
}
"""By operator; `torch_meanings` has what these are."""
