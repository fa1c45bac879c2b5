"""All operators whose meaning is written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tlp_tvm.tuning.torch_meanings.attention import ATTENTION
from tlp_tvm.tuning.torch_meanings.images import IMAGES
from tlp_tvm.tuning.torch_meanings.numbers import NUMBERS
from tlp_tvm.tuning.torch_meanings.places import PLACES
from tlp_tvm.tuning.torch_meanings.row_pairs import ROWS

Meaning = Callable[..., Any]
"""An operator's arguments, in the order of its schema, to what it gives."""

MEANINGS: dict[str, Meaning] = {**NUMBERS, **ROWS, **PLACES, **IMAGES, **ATTENTION}
"""By operator, as "mish"."""
