"""Operators that TVM's importer of exported programs lacks or misreads, as a few that it knows.

What such an operator is, is traced on tensors without values, as `torch_meanings` has it or as torch
decomposes it, and put in its place.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from tlp_tvm.metaschedule.from_torch.misread import KNOWN_BY_OTHERS
from tlp_tvm.tuning.torch_meanings.overloads import by_place
from tlp_tvm.tuning.torch_meanings.table import MEANINGS, Meaning


def put_meanings(program: Any) -> None:
    """Change a program in place, where an operator of it is known by others.

    Args:
        program: `torch.export.ExportedProgram`.
    """
    for node in list(program.graph.nodes):
        packet = getattr(node.target, "overloadpacket", None) if node.op == "call_function" else None
        name = getattr(packet, "__name__", "")
        if name in KNOWN_BY_OTHERS and node.target.namespace == "aten":
            given = _arguments(node)
            if KNOWN_BY_OTHERS[name](fx.node.map_arg(given, lambda each: each.meta["val"])):
                _replace(program.graph, node, MEANINGS.get(name) or by_place(node.target), given)
    program.graph.eliminate_dead_code()


def _arguments(node: fx.Node) -> list[Any]:
    """All arguments, in the order of the operator's schema."""
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    return [
        node.args[i] if i < len(node.args) else node.kwargs.get(each.name, each.default_value)
        for i, each in enumerate(schema)
    ]


def _replace(graph: fx.Graph, node: fx.Node, meaning: Meaning, given: Any) -> None:
    from torch._decomp import core_aten_decompositions, get_decompositions
    from torch._guards import detect_fake_mode
    from torch.fx.experimental.proxy_tensor import make_fx

    nodes: list[fx.Node] = []
    fx.node.map_arg(given, nodes.append)
    values = [each.meta["val"] for each in nodes]
    table: dict[Any, Any] = {**core_aten_decompositions()}
    table.update(get_decompositions([torch.ops.aten.grid_sampler_2d]))
    without_values = detect_fake_mode(node.meta["val"])
    assert without_values is not None

    def function(*tensors: torch.Tensor) -> Any:
        rest = iter(tensors)
        return meaning(*fx.node.map_arg(given, lambda _: next(rest)))

    with torch.no_grad(), without_values:
        traced = make_fx(function, decomposition_table=table)(*values)
    made = dict(zip((each for each in traced.graph.nodes if each.op == "placeholder"), nodes, strict=True))
    with graph.inserting_before(node):
        for each in traced.graph.nodes:
            if each.op == "call_function":
                made[each] = graph.node_copy(each, lambda old: made[old])
            elif each.op == "get_attr":
                raise NotImplementedError(f"{node.target} with a constant")
    [result] = next(each for each in traced.graph.nodes if each.op == "output").args
    if isinstance(result, fx.Node):
        node.replace_all_uses_with(made[result])
        return
    for user in list(node.users):
        place = result[user.args[1]] if user.target is operator.getitem else None
        if place is not None:
            user.replace_all_uses_with(made[place])
            graph.erase_node(user)
