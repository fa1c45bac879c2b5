"""Means over the pixels of images are products with weights that are all the same.

MetaSchedule has no program that takes the mean of channels, which lie side by side, with vector units: it
gathers the pixels of one channel. Of a product it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tlp_tvm.metaschedule.graph.replaced_calls import Emit, kind_of, shape_of, with_calls_replaced

_MEAN, _POOL = "relax.mean", "relax.nn.adaptive_avg_pool1d"


def with_means_for_pools(module: Any) -> Any:
    """Write poolings of one axis to one number, as in Swin, as means: TVM converts no layouts beside them.

    Args:
        module: Relax module.
    """
    return with_calls_replaced(module, _mean)


def _mean(call: Any, _bound: Any, _emit: Emit) -> Any:
    from tvm import relax

    if str(call.op.name) != _POOL or [int(each) for each in call.attrs.output_size or ()] != [1]:
        return None
    return relax.op.mean(call.args[0], -1, keepdims=True)


def with_means_as_products(module: Any) -> Any:
    """Write means over axes that are not the last as a product of a row of weights and a matrix.

    Args:
        module: Relax module.
    """
    return with_calls_replaced(module, _product)


def _product(call: Any, _bound: Any, emit: Emit) -> Any:
    """A mean of known 32-bit numbers as a product; None for another call."""
    if str(call.op.name) != _MEAN or kind_of(call) != "float32" or call.attrs.axis is None:
        return None
    from tvm import relax

    shape, mean_shape = shape_of(call.args[0]), shape_of(call)
    if shape is None or mean_shape is None:
        return None
    parts = _parts(shape, sorted(int(axis) % len(shape) for axis in call.attrs.axis))
    if parts is None:
        return None
    weights = relax.const(np.full((1, parts[1]), 1 / parts[1], np.float32))
    product = emit(relax.op.matmul(weights, emit(relax.op.reshape(call.args[0], parts))))
    return relax.op.reshape(product, mean_shape)


def _parts(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, int, int] | None:
    """Numbers before, along and behind the axes of a mean; None where these are apart, or the last."""
    if not axes or list(axes) != list(range(axes[0], axes[-1] + 1)) or axes[-1] == len(shape) - 1:
        return None
    before, mean, after = (
        math.prod(part) for part in (shape[: axes[0]], shape[axes[0] : axes[-1] + 1], shape[axes[-1] + 1 :])
    )
    return (before, mean, after) if mean > 1 and after > 1 else None
