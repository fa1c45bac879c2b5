"""Rows that no tile divides are made more: 197 tokens, a prime, become 208 from the first layer to the last.

A tile of 197 rows has one row or all. So the rows are padded once, before the first linear layer, and cut off
where an operator needs them as they were: after the last. What is at the end of padded axes is finite, and
never reaches a row that is kept: a softmax over a padded axis gives zeros there, by a mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tlp_tvm.metaschedule.graph.replaced_calls import is_call, shape_of, tidied, with_calls_replaced
from tlp_tvm.metaschedule.graph.rows.row_rules import CUT, PAD, PRODUCT, RowRules
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.tuning.network.longer_axes import most_copies, padded_extent


def with_more_rows(module: Any) -> Any:
    """Rewrite a network so, for each number of rows that no tile divides.

    Args:
        module: Relax module whose parameters are constants.
    """
    for rows in sorted({shape[0] for each in _calls(module) if (shape := _of_dense(each))}):
        if not (after := padded_extent(rows)):
            continue
        rules = RowRules(rows, after)
        longer = tidied(with_calls_replaced(module, rules.replaced))
        if _copies(longer) - _copies(module) <= most_copies(rules.products):
            module = longer
    return module


def _of_dense(call: Any) -> tuple[int, ...]:
    """The shape of a product by constant weights; empty of another call."""
    shape = shape_of(call) if is_call(call, PRODUCT) else None
    return shape if shape is not None and len(shape) == 2 and _is_constant(call.args[1]) else ()


def _copies(module: Any) -> int:
    """How many tensors are padded or cut when the network runs."""
    return sum(is_call(each, CUT) or _is_pad(each) for each in _calls(module))


def _is_pad(call: Any) -> bool:
    return is_call(call, "relax.call_tir") and str(call.args[0].name_hint).startswith(PAD)


def _is_constant(expression: Any) -> bool:
    from tvm import ir

    return isinstance(expression, ir.GenericConst)


def _calls(module: Any) -> Iterator[Any]:
    """What variables of the network are bound to."""
    load_tvm()
    from tvm import relax

    for function in module.functions.values():
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
            for block in function.body.blocks:
                for binding in block.bindings:
                    yield binding.value
