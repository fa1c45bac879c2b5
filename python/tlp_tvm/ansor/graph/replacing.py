"""Calls of some operators replaced by other expressions, all through a network, and by operators of ours."""

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


def register_operator(
    name: str,
    what: str,
    arguments: Sequence[str],
    kind: Callable[[Sequence[Any], Any], Any],
    computed: Callable[[Sequence[Any], Any], Any],
    scheduled: Callable[[Sequence[Any]], Any],
) -> None:
    """Tell TVM of an operator with one result, which it fuses with no other.

    Args:
        name: "tlp_tvm.", and its own.
        what: it does, as a sentence.
        arguments: their names.
        kind: types of the arguments and attributes -> type of the result.
        computed: tensors of `te` and attributes -> a tensor.
        scheduled: these tensors -> a schedule for whatever compiles loops.
    """
    tvm = load_tvm()
    relay = tvm.relay
    relay.op.op.register(name, what)
    operator = relay.op.get(name)
    operator.set_num_inputs(len(arguments))
    for argument in arguments:
        operator.add_argument(argument, "Tensor", argument)
    operator.set_attrs_type_key("DictAttrs")
    operator.add_type_rel(_word(name), kind)
    operator.set_support_level(10)
    relay.op.op.register_pattern(name, relay.op.op.OpPattern.OPAQUE)
    relay.op.op.register_stateful(name, False)

    def strategy(attributes: Any, _inputs: Any, _out_type: Any, _target: Any) -> Any:
        found = relay.op.op.OpStrategy()
        found.add_implementation(
            lambda _attributes, inputs, _out: [computed(inputs, attributes)],
            lambda _attributes, outs, _target: scheduled(outs),
            name=name,
        )
        return found

    generic = tvm.target.override_native_generic_func(_word(name))(strategy)
    tvm.ir.register_op_attr(name, "FTVMStrategy", generic)


def _word(name: str) -> str:
    return name.replace(".", "_")
