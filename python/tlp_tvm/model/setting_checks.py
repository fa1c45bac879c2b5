"""Checks of a network's settings: types, ranges and how they fit together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tlp_tvm import _core

RANGES: dict[str, tuple[int, int]] = {**_core.setting_ranges(), "one_hot": (0, 4096)}
FLAGS = ("raw_numbers", "positions", "faithful")
NAMES = {*RANGES, *FLAGS, "dropout", "backbone"}


def check_entries(values: Mapping[str, Any]) -> None:
    """Check that there is an entry for each setting, and no other.

    Raises:
        ValueError: one is missing or unknown.
    """
    for name in sorted(NAMES - values.keys()):
        raise ValueError(f'expected "{name}", found no such entry')
    for name in values.keys() - NAMES:
        raise ValueError(f"expected the settings of a model of this version, found {name!r} too")


def check_settings(values: Mapping[str, Any]) -> None:
    """Check settings before anything is built by them.

    Args:
        values: each setting by its name.

    Raises:
        ValueError: one is of another type, out of its range, or does not fit another.
    """
    for name, (first, last) in RANGES.items():
        value = values[name]
        if type(value) is not int or not first <= value <= last:
            raise ValueError(f"{name}: expected a number from {first} to {last}, found {value!r}")
    for name in FLAGS:
        if type(values[name]) is not bool:
            raise ValueError(f"{name}: expected true or false, found {values[name]!r}")
    dropout = values["dropout"]
    if type(dropout) not in (int, float) or not math.isfinite(dropout) or not 0 <= dropout < 1:
        raise ValueError(f"dropout: expected a number from 0 to below 1, found {dropout!r}")
    if values["hidden"] % values["attention_heads"] != 0:
        raise ValueError(
            f"attention_heads: expected a divisor of hidden ({values['hidden']}), "
            f"found {values['attention_heads']}"
        )
    if values["one_hot"] > values["width"]:
        raise ValueError(
            f"one_hot: expected at most the width ({values['width']}), found {values['one_hot']}"
        )
