"""Calls of some operators replaced by other expressions, all through a network."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm

Replacement = Callable[[Any, Sequence[Any]], Any]
"""A call with its type, and its arguments by then -> what takes its place, or None to leave it."""


def with_calls_replaced(module: Any, operators: Sequence[str], replacement: Replacement) -> Any:
    """Replace calls.

    Args:
        module: Relay module.
        operators: their names.
        replacement: of each call.

    Returns:
        The module, with types.
    """
    tvm = load_tvm()
    infer = tvm.relay.transform.InferType()
    callback = _callback(operators, replacement)
    return infer(tvm.IRModule.from_expr(tvm.relay.dataflow_pattern.rewrite(callback, infer(module)["main"])))


def _callback(operators: Sequence[str], replacement: Replacement) -> Any:
    from tvm.relay.dataflow_pattern import CallPattern, DFPatternCallback, is_op

    class Replaced(DFPatternCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(rewrite_once=True)
            calls = [CallPattern(is_op(name), None) for name in operators]
            self.pattern = functools.reduce(operator.or_, calls)

        def callback(self, pre: Any, post: Any, _found: Any) -> Any:
            replaced = replacement(pre, post.args)
            return post if replaced is None else replaced

    return Replaced()
