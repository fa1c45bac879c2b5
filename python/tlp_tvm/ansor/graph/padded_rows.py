"""Rows that no tile divides are made more: 197 tokens, a prime, become 208 from the first layer to the last.

A matrix product of 197 rows can be cut into rows of one or into none; its programs reach about half of the
speed of one with 208. So the rows are padded once, before the first linear layer, and cut off where an
operator needs them as they were: after the last. What is at the end of padded axes is finite, and never
reaches a row that is kept: a softmax over a padded axis gives zeros there, by a mask.
"""

from __future__ import annotations

from typing import Any

from tlp_tvm.ansor.graph.constants import folding_pass
from tlp_tvm.ansor.graph.padded_forms import Forms, shape_of
from tlp_tvm.ansor.graph.padding_rules import PaddingRules
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.network.longer_axes import most_copies, padded_extent


def with_padded_rows(module: Any) -> Any:
    """Rewrite "main" so, for each number of rows that no tile divides.

    Args:
        module: Relay module whose parameters are constants.

    Returns:
        The module, with types.
    """
    tvm = load_tvm()
    relay, infer = tvm.relay, tvm.relay.transform.InferType()
    module = infer(module)
    for rows in sorted(_rows_of_products(module["main"].body)):
        if not (after := padded_extent(rows)):
            continue
        main = module["main"]
        rewriter = _Rewriter(rows, after)
        body = rewriter.rewritten(main.body)
        if _copies(body) - _copies(main.body) <= most_copies(rewriter.rules.products):
            module = infer(tvm.IRModule.from_expr(relay.Function(main.params, body)))
            module = folding_pass()(module)
    return module


def _rows_of_products(body: Any) -> set[int]:
    return {shape_of(each)[0] for each in _calls(body) if each.op.name == "nn.dense"}


def _copies(body: Any) -> int:
    """How many tensors are padded or cut when the network runs."""
    constant = load_tvm().relay.Constant
    return sum(
        each.op.name in ("nn.pad", "strided_slice") and not isinstance(each.args[0], constant)
        for each in _calls(body)
    )


def _calls(body: Any) -> list[Any]:
    relay, ir = load_tvm().relay, load_tvm().ir
    found: list[Any] = []

    def visit(expression: Any) -> None:
        if isinstance(expression, relay.Call) and isinstance(expression.op, ir.Op):
            found.append(expression)

    relay.analysis.post_order_visit(body, visit)
    return found


class _Rewriter:
    """Every expression in its long form where there is a rule for it, and in its own elsewhere."""

    def __init__(self, before: int, after: int) -> None:
        self._relay = load_tvm().relay
        self._op = load_tvm().ir.Op
        self._forms = Forms(before, after)
        self.rules = PaddingRules(self._forms)

    def rewritten(self, root: Any) -> Any:
        """The expression, in the shape of the original."""
        self._relay.analysis.post_order_visit(root, self._visit)
        return self._forms.plain(root)

    def _visit(self, expression: Any) -> None:
        relay, forms = self._relay, self._forms
        if forms.knows(expression) or isinstance(expression, self._op):
            return
        long, plain = None, expression
        if isinstance(expression, relay.Call) and isinstance(expression.op, self._op):
            if (long := self.rules.of_call(expression)) is None:
                arguments = [forms.plain(each) for each in expression.args]
                plain = relay.Call(expression.op, arguments, expression.attrs, expression.type_args)
        elif isinstance(expression, relay.Tuple):
            plain = relay.Tuple([forms.plain(each) for each in expression.fields])
        elif isinstance(expression, relay.TupleGetItem) and (long := self.rules.of_part(expression)) is None:
            plain = relay.TupleGetItem(forms.plain(expression.tuple_value), expression.index)
        if long is not None:
            forms.set_long(expression, long)
        else:
            forms.set_plain(expression, plain)
