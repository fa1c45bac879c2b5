"""Poolings that look past their input: a window that is larger is cut to it.

Files have them: the last pooling of EfficientNet in `transformers` is 1280 x 1280 in ceil mode, on 7 x 7
numbers. TVM visits the whole window, 2 billion numbers, to read 62,720.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlp_tvm.ansor.graph.replacing import with_calls_replaced
from tlp_tvm.ansor.loading.locate import load_tvm

_POOLS = ("nn.max_pool2d", "nn.avg_pool2d")


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
    attributes = call.attrs
    layout = str(attributes.layout)
    extents = call.args[0].checked_type.shape
    height, width = (int(extents[layout.index(axis)]) for axis in "HW")
    outputs = [int(call.checked_type.shape[layout.index(axis)]) for axis in "HW"]
    window = [int(extent) for extent in attributes.pool_size]
    covered = window[0] >= height and window[1] >= width and window != [height, width]
    plain = not any(int(pad) for pad in attributes.padding) and all(int(d) == 1 for d in attributes.dilation)
    return (height, width) if covered and plain and outputs == [1, 1] else None
