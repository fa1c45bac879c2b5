"""A convolution of one pixel is a product of a row and a matrix.

As in the gates of EfficientNet, which scale channels: fused with what they scale, such a convolution may be
computed again for every pixel of it. Behind a product, the row takes another shape first, which ends what
is fused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tlp_tvm.metaschedule.graph.replaced_calls import (
    Emit,
    kind_of,
    shapes_with_channels_last,
    with_calls_replaced,
)


def with_products_for_pixels(module: Any) -> Any:
    """Write convolutions by weights of 1 x 1, of images of one pixel, as products.

    Args:
        module: Relax module; its convolutions have channels last.
    """
    return with_calls_replaced(module, _product)


def _product(call: Any, bound: Sequence[Any], emit: Emit) -> Any:
    """A convolution as a product; None where it reads more than a pixel, or is another call."""
    from tvm import relax

    shapes = shapes_with_channels_last(call, bound)
    if shapes is None:
        return None
    given, weights, result = shapes
    if math.prod(given[1:3]) != 1 or math.prod(result[1:3]) != 1 or weights[:3] != (1, 1, given[3]):
        return None
    matrix = relax.const(bound[1].value.numpy().reshape(weights[2:]), kind_of(call.args[1]))
    row = emit(relax.op.reshape(call.args[0], (given[0], given[3])))
    kind = str(call.attrs.out_dtype or "") or None
    return relax.op.reshape(emit(relax.op.matmul(row, matrix, out_dtype=kind)), result)
