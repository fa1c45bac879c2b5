"""Zeros around an image are the padding of the convolution that reads it, and none around it are no operator.

Networks that came from TensorFlow, as MobileNetV2 in `transformers`, pad before each convolution, also by
nothing. A padding between two convolutions has an order of axes of its own: it keeps the first one's
activation out of it, and the image is transposed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlp_tvm.metaschedule.graph.replaced_calls import (
    CONVOLUTION,
    Emit,
    convolution_like,
    is_call,
    with_calls_replaced,
)

_PAD = "relax.nn.pad"


def with_paddings_folded(module: Any) -> Any:
    """Drop paddings by nothing, and let convolutions do those with zeros that they read.

    Args:
        module: Relax module; its images have channels first.
    """
    return with_calls_replaced(module, _folded)


def _folded(call: Any, bound: Sequence[Any], _emit: Emit) -> Any:
    """What stands for a call; None where it stays."""
    if is_call(call, _PAD):
        return call.args[0] if not any(_widths(call)) else None
    if not is_call(call, CONVOLUTION) or not is_call(bound[0], _PAD) or call.attrs.data_layout != "NCHW":
        return None
    pad = bound[0].attrs
    of_zeros = str(pad.pad_mode) == "constant" and float(pad.pad_value) == 0
    widths = _widths(bound[0])
    if not of_zeros or any(widths[:4]) or min(widths) < 0:  # below 0 it cuts
        return None
    before, behind = widths[4::2], widths[5::2]
    padding = [int(own) + more for own, more in zip(call.attrs.padding, before + behind, strict=True)]
    return convolution_like(call, bound[0].args[0], call.args[1], padding=padding)


def _widths(call: Any) -> list[int]:
    """Before and behind each axis."""
    return [int(width) for width in call.attrs.pad_width]
