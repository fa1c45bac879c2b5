"""Zeros around an image are the padding of the convolution that reads it, and none around it are no operator.

Networks that came from TensorFlow, as MobileNetV2 in `transformers`, pad before each convolution, also by
nothing. A padding between two convolutions has an order of axes of its own: it keeps the first one's
activation out of it, and the image is transposed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlp_tvm.metaschedule.graph.replaced_calls import Emit, with_calls_replaced

_PAD, _CONVOLUTION = "relax.nn.pad", "relax.nn.conv2d"


def with_paddings_folded(module: Any) -> Any:
    """Drop paddings by nothing, and let convolutions do those with zeros that they read.

    Args:
        module: Relax module; its images have channels first.
    """
    return with_calls_replaced(module, _folded)


def _folded(call: Any, bound: Sequence[Any], _emit: Emit) -> Any:
    """What stands for a call; None where it stays."""
    name = str(call.op.name)
    if name == _PAD:
        return call.args[0] if not any(_widths(call)) else None
    if name != _CONVOLUTION or not _pads_with_zeros(bound[0]):
        return None
    from tvm import relax

    widths, attributes = _widths(bound[0]), call.attrs
    if attributes.data_layout != "NCHW" or any(widths[:4]):
        return None
    top, bottom, left, right = widths[4:]
    padding = [int(each) for each in attributes.padding]  # top, left, bottom, right
    return relax.op.nn.conv2d(
        bound[0].args[0],
        call.args[1],
        strides=attributes.strides,
        padding=[a + b for a, b in zip(padding, (top, left, bottom, right), strict=True)],
        dilation=attributes.dilation,
        groups=attributes.groups,
        data_layout=attributes.data_layout,
        kernel_layout=attributes.kernel_layout,
        out_layout=attributes.out_layout,
        out_dtype=attributes.out_dtype,
    )


def _pads_with_zeros(bound: Any) -> bool:
    from tvm import relax

    if not isinstance(bound, relax.Call) or str(getattr(bound.op, "name", "")) != _PAD:
        return False
    return str(bound.attrs.pad_mode) == "constant" and float(bound.attrs.pad_value) == 0


def _widths(call: Any) -> list[int]:
    """Before and behind each axis."""
    return [int(width) for width in call.attrs.pad_width]
