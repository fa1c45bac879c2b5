"""Poolings that look past their input are cut to it, and means over large images are taken row by row.

Files have the former: the last pooling of EfficientNet in `transformers` is 1280 x 1280 in ceil mode, on
7 x 7 numbers. TVM visits the whole window, 2 billion numbers, to read 62,720.

Of the latter, squeeze and excitation has one for each block. Ansor does not change the order of a reduction's
loops: with channels last, the innermost one visits the image, a number of one channel at a time, and cannot
be vectorised. A depthwise convolution whose weights are all the same is the same mean, and can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tlp_tvm.ansor.graph.replacing import with_calls_replaced
from tlp_tvm.ansor.loading.locate import load_tvm

_POOLS = ("nn.max_pool2d", "nn.avg_pool2d")
_MEANS = ("nn.adaptive_avg_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d")

LARGE = 400
"""Numbers of a channel from which on its mean is taken row by row."""


def with_cut_windows(module: Any) -> Any:
    """Cut the windows that are larger than their input, where nothing is padded.

    What such a window gives is one number, of what is inside: in ceil mode, TVM and PyTorch take the mean
    over what is there.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    return with_calls_replaced(module, _POOLS, _cut)


def _cut(call: Any, arguments: Sequence[Any]) -> Any:
    if not (window := _cut_window(call)):
        return None
    pool = getattr(load_tvm().relay.nn, str(call.op.name).removeprefix("nn."))
    layouts = {key: str(call.attrs[key]) for key in ("layout", "out_layout")}
    return pool(arguments[0], pool_size=window, **layouts)


def _cut_window(call: Any) -> tuple[int, int] | None:
    """The window on the input alone; None where it is no larger, or where that would not be the same."""
    height, width = _image(call, call.args[0])
    window = _window(call)
    covered = window[0] >= height and window[1] >= width and window != (height, width)
    plain = not _is_padded(call) and all(int(d) == 1 for d in call.attrs.dilation)
    return (height, width) if covered and plain and _image(call, call) == (1, 1) else None


def _image(call: Any, expression: Any) -> tuple[int, int]:
    """Height and width of what a pooling takes or gives."""
    layout, extents = str(call.attrs.layout), expression.checked_type.shape
    return int(extents[layout.index("H")]), int(extents[layout.index("W")])


def _window(call: Any) -> tuple[int, int]:
    height, width = call.attrs.pool_size
    return int(height), int(width)


def _is_padded(call: Any) -> bool:
    return any(int(pad) for pad in call.attrs.padding)


def with_means_by_rows(module: Any) -> Any:
    """Take means over whole images, with channels last, of each row first, then of those.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    return with_calls_replaced(module, _MEANS, _by_rows)


def _by_rows(call: Any, arguments: Sequence[Any]) -> Any:
    nn, before = load_tvm().relay.nn, call.args[0].checked_type
    if str(call.attrs.layout) != "NHWC" or before.dtype != "float32":
        return None
    (height, width), channels = _image(call, call.args[0]), int(before.shape[3])
    if _image(call, call) != (1, 1) or not _sees_all(call, (height, width)):
        return None
    if height * width < LARGE or min(height, width) == 1:
        return None

    def mean(data: Any, window: tuple[int, int]) -> Any:
        weights = np.full((*window, channels, 1), 1 / max(window), "float32")
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWOI"}
        grouped = {"groups": channels, "channels": channels, "kernel_size": window}
        return nn.conv2d(data, load_tvm().relay.const(weights), **grouped, **layouts)

    return mean(mean(arguments[0], (1, width)), (height, 1))


def _sees_all(call: Any, image: tuple[int, int]) -> bool:
    """Whether the window of a pooling that has one is the image."""
    if str(call.op.name) != "nn.avg_pool2d":
        return True
    return not _is_padded(call) and _window(call) == image
