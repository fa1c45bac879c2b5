"""Means over the pixels of images are products with weights that are all the same.

MetaSchedule has no program that takes the mean of channels, which lie side by side, with vector units: it
gathers the pixels of one channel. Of a product it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tlp_tvm.metaschedule.loading.locate import load_tvm

_MEAN = "relax.mean"


def with_means_as_products(module: Any) -> Any:
    """Write means over axes that are not the last as a product of a row of weights and a matrix.

    Args:
        module: Relax module.
    """
    tvm = load_tvm()
    from tvm import relax

    @relax.expr_functor.mutator
    class Rewritten(relax.PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            """A product in the place of a mean."""
            new = self.visit_expr_post_order(call)
            if isinstance(new, relax.Call) and isinstance(new.op, tvm.ir.Op) and str(new.op.name) == _MEAN:
                return self._product(new)
            return new

        def _product(self, call: Any) -> Any:
            shape = _known_shape(call.args[0])
            axes = [] if call.attrs.axis is None else [int(axis) % len(shape) for axis in call.attrs.axis]
            parts = _parts(shape, sorted(axes))
            if parts is None:
                return call
            before, mean, after = parts
            matrix = self.builder_.emit(relax.op.reshape(call.args[0], (before, mean, after)))
            weights = relax.const(np.full((1, mean), 1 / mean, np.float32))
            product = self.builder_.emit(relax.op.matmul(weights, matrix))
            return relax.op.reshape(product, tuple(int(extent) for extent in call.ty.shape))

    rewriter = Rewritten(module)
    for name, function in module.functions.items():
        if isinstance(function, relax.Function):
            rewriter.builder_.update_func(name, rewriter.visit_expr(function))
    return rewriter.builder_.get()


def _known_shape(argument: Any) -> list[int]:
    """The shape of 32-bit numbers; empty where it is not known, or where they are others."""
    kind = str(getattr(argument.ty.dtype, "dtype", argument.ty.dtype))
    shape = argument.ty.shape
    return [int(extent) for extent in shape] if shape is not None and kind == "float32" else []


def _parts(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, int, int] | None:
    """Numbers before, along and behind the axes of a mean; None where these are apart, or the last."""
    if not axes or list(axes) != list(range(axes[0], axes[-1] + 1)) or axes[-1] == len(shape) - 1:
        return None
    before, mean, after = (
        math.prod(part) for part in (shape[: axes[0]], shape[axes[0] : axes[-1] + 1], shape[axes[-1] + 1 :])
    )
    return (before, mean, after) if mean > 1 and after > 1 else None
