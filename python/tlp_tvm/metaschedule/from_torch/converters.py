"""Operators of exported programs that TVM's importer lacks, or gets wrong, in Relax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tlp_tvm.metaschedule.loading.locate import load_tvm

Converter = Callable[..., Any]
"""A node of torch's graph, and the importer, to an expression."""


def converters() -> dict[str, Converter]:
    """What TVM's importer is told of operators that it lacks, by their names in torch."""
    load_tvm()
    from tvm import relax

    def product(node: Any, importer: Any) -> Any:
        left, right = (importer.env[each] for each in node.args)
        return importer.block_builder.emit(relax.op.matmul(left, right, out_dtype="int32"))

    curves = {"elu.default": _elu, "selu.default": _selu, "celu.default": _celu}
    reductions = {"amax.default": "max", "amin.default": "min", "prod.dim_int": "prod"}
    reducing = {name: _reduction(getattr(relax.op, of)) for name, of in reductions.items()}
    return {"_int_mm.default": product, **curves, **reducing}


def _reduction(of: Converter) -> Converter:
    def convert(node: Any, importer: Any) -> Any:
        kept = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
        axes = node.args[1] if len(node.args) > 1 else None
        axes = None if axes == [] else axes
        return importer.block_builder.emit(of(importer.env[node.args[0]], axes, kept))

    return convert


_SELU = 1.6732632423543772, 1.0507009873554805
"""Its alpha and its scale."""


def _elu(node: Any, importer: Any) -> Any:
    factors = [*node.args[1:], 1.0, 1.0, 1.0]
    return _curve(node, importer, *factors[:3])


def _selu(node: Any, importer: Any) -> Any:
    return _curve(node, importer, *_SELU, 1.0)


def _celu(node: Any, importer: Any) -> Any:
    alpha = node.args[1] if len(node.args) > 1 else 1.0
    return _curve(node, importer, alpha, 1.0, 1 / alpha)


def _curve(node: Any, importer: Any, alpha: float, scale: float, inside: float) -> Any:
    """What is scale * (max(x, 0) + alpha * (exp(inside * min(x, 0)) - 1)).

    Of these factors TVM's importer knows an ELU's alpha; what it has for SELU and CELU is something else.
    """
    from tvm import relax

    x, emit = importer.env[node.args[0]], importer.block_builder.emit
    one, zero, alpha, scale, inside = (
        relax.const(float(each), x.ty.dtype) for each in (1, 0, alpha, scale, inside)
    )
    below = emit(relax.op.exp(emit(relax.op.multiply(emit(relax.op.minimum(x, zero)), inside))))
    curve = emit(relax.op.multiply(emit(relax.op.subtract(below, one)), alpha))
    return emit(relax.op.multiply(emit(relax.op.add(emit(relax.op.nn.relu(x)), curve)), scale))
