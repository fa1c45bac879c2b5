"""Graphs of TorchScript: what is in them, and what the importer needs apart."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch


def operators_of(graph: Any) -> set[str]:
    """Names of the operators of a TorchScript graph, as "aten::mish".

    Args:
        graph: `torch.Graph`, with all functions inlined.
    """
    found = set()
    for node in graph.nodes():
        found.add(node.kind())
        for block in node.blocks():
            found |= operators_of(block)
    return found


def inlined(script: Any) -> Any:
    """The graph that the importer reads, in which all functions are inlined from now on.

    Args:
        script: of TorchScript.
    """
    torch._C._jit_pass_inline(script.graph)
    return script.graph


def keep_parameters_apart(graph: Any) -> None:
    """Let no two parameters of an operator look alike to the importer, which takes them for one then.

    It names them by their first user and the last word of their name, as in "weight"; an operator of a whole
    encoder layer has four of these. Another operator that does nothing is put between.

    Args:
        graph: `torch.Graph`, with all functions inlined.
    """
    for node in list(graph.nodes()):
        read = [each for each in node.inputs() if each.node().kind() == "prim::GetAttr"]
        names = Counter(each.node().s("name") for each in read)
        for value in read if node.kind().startswith("aten::") else []:
            if names[value.node().s("name")] > 1:
                between = graph.create("aten::detach", [value])
                between.insertBefore(node)
                node.replaceInputWith(value, between.output())


def show_changes(graph: Any) -> None:
    """Let what follows an operator that changes a tensor in place read what it gives.

    The importer takes such an operator for one that does not. Where the tensor is a part of another one, the
    part is copied there, which the importer knows.

    Args:
        graph: `torch.Graph`, with all functions inlined.
    """
    no = None
    for node in list(graph.nodes()):
        kind = node.kind()
        if not kind.endswith("_") or kind.endswith("__") or kind == "aten::copy_" or node.outputsSize() != 1:
            continue
        changed = node.inputsAt(0)
        if changed.node().kind() not in ("aten::slice", "aten::select"):
            changed.replaceAllUsesAfterNodeWith(node, node.output())
            continue
        if no is None:
            no = graph.insertConstant(False)
            no.node().moveBefore(next(iter(graph.nodes())))
        copy = graph.create("aten::copy_", [changed, node.output(), no])
        copy.insertAfter(node)
