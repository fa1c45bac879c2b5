"""Small whole powers as products: TVM calls the C library for each number of `power`.

GPT-2's activation has x to the power of 3 in the epilogue of its widest layer, which then takes 1.6 times as
long.
"""

from __future__ import annotations

from typing import Any

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
    tvm = load_tvm()
    relay = tvm.relay
    infer = relay.transform.InferType()
    typed = infer(module)

    class Products(relay.ExprMutator):  # type: ignore[misc,name-defined]
        def visit_call(self, call: Any) -> Any:
            visited = super().visit_call(call)
            if call.op != relay.op.get("power") or not (times := _whole_power(call)):
                return visited
            x = visited.args[0]
            square = relay.multiply(x, x)
            return {2: square, 3: relay.multiply(square, x), 4: relay.multiply(square, square)}[times]

    return infer(tvm.IRModule.from_expr(Products().visit(typed["main"])))


def _whole_power(call: Any) -> int:
    """The exponent, where it is one number for all and can be written out; else 0."""
    x, exponent = call.args
    if not isinstance(exponent, load_tvm().relay.Constant) or exponent.data.numpy().size != 1:
        return 0
    if list(call.checked_type.shape) != list(x.checked_type.shape):
        return 0
    value = float(exponent.data.numpy().item())
    return int(value) if value in range(2, _MOST + 1) else 0
