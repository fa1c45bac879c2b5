"""What operators of constants give, computed by NumPy: TVM compiles and runs a function for each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_ARITHMETIC: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "divide": np.divide,
    "multiply": np.multiply,
    "negative": np.negative,
    "sqrt": np.sqrt,
    "subtract": np.subtract,
}
"""On floating-point numbers, which IEEE 754 rounds rightly, so that a compiled function gives the same bits;
TVM's integers may overflow and divide in other ways."""

_SAME_DATA = frozenset(["expand_dims", "reshape", "squeeze"])

_TRANSPOSED = frozenset(["permute_dims", "transpose"])
"""In Relax, and in Relay."""


def evaluated(
    name: str, values: Sequence[Array], shape: tuple[int, ...], axes: Sequence[int] | None
) -> Array | None:
    """The result of an operator.

    Args:
        name: as Relay has it, or Relax without its prefix.
        values: all its tensors.
        shape: of the result.
        axes: of a transposition; None for the reverse.

    Returns:
        None where the operator is another.
    """
    if name in _ARITHMETIC:
        if any(each.dtype.kind != "f" for each in values):
            return None
        with np.errstate(all="ignore"):
            return np.asarray(_ARITHMETIC[name](*values))
    if name in _SAME_DATA:
        return values[0].reshape(shape)
    if name in _TRANSPOSED:
        return np.transpose(values[0], None if axes is None else [int(axis) for axis in axes])
    if name == "broadcast_to":
        return np.broadcast_to(values[0], shape)
    return None
