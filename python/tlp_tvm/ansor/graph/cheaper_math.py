"""Powers and sigmoids as what vectors can do, and what can be part of the operator before it.

TVM calls the C library for each number of a power and of a sigmoid. GPT-2's activation has x to the power of
3 in the epilogue of its widest layer, which then takes 1.6 times as long. EfficientNet and many others have a
sigmoid after each convolution. A PReLU it keeps apart from the convolution before it, with channels first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlp_tvm.ansor.graph.replacing import with_calls_replaced
from tlp_tvm.ansor.loading.locate import load_tvm

_MOST = 4
"""The highest power that is written out."""


def with_products_for_powers(module: Any) -> Any:
    """Write x * x for x to the power of 2, and so on up to 4.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    return with_calls_replaced(module, ["power"], _product)


def with_tanh_for_sigmoids(module: Any) -> Any:
    """Write 1/2 + 1/2 tanh(x / 2) for sigmoid(x): of tanh, TVM knows a polynomial (`FastMath`).

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    return with_calls_replaced(module, ["sigmoid"], _by_tanh)


def with_sums_for_prelus(module: Any) -> Any:
    """Write max(x, 0) + slope * min(x, 0) for a PReLU.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    return with_calls_replaced(module, ["nn.prelu"], _sum)


def _sum(call: Any, arguments: Sequence[Any]) -> Any:
    relay = load_tvm().relay
    x, slopes = arguments
    behind = len(call.checked_type.shape) - int(call.attrs.axis) - 1
    slopes = relay.expand_dims(slopes, axis=1, num_newaxis=behind) if behind else slopes
    nothing = relay.const(0.0, call.checked_type.dtype)
    return relay.nn.relu(x) + slopes * relay.minimum(x, nothing)


def _by_tanh(call: Any, arguments: Sequence[Any]) -> Any:
    relay = load_tvm().relay
    if call.checked_type.dtype != "float32":
        return None
    half = relay.const(0.5, "float32")
    return half + half * relay.tanh(half * arguments[0])


def _product(call: Any, arguments: Sequence[Any]) -> Any:
    if not (times := _whole_power(call)):
        return None
    multiply, x = load_tvm().relay.multiply, arguments[0]
    square = multiply(x, x)
    return {2: square, 3: multiply(square, x), 4: multiply(square, square)}[times]


def _whole_power(call: Any) -> int:
    """The exponent, where it is one number for all and can be written out; else 0."""
    x, exponent = call.args
    if not isinstance(exponent, load_tvm().relay.Constant) or exponent.data.numpy().size != 1:
        return 0
    if list(call.checked_type.shape) != list(x.checked_type.shape):
        return 0
    value = float(exponent.data.numpy().item())
    return int(value) if value in range(2, _MOST + 1) else 0
