"""What is changed in an ONNX model, before TVM's importer reads it; it computes the same."""

from __future__ import annotations

from typing import Any


def repair(model: Any) -> None:
    """Change a model in place, where TVM would compute something else.

    A clip whose lower bound is left out would have its upper bound for one; one of whole numbers would have
    bounds that are rounded.

    Args:
        model: `onnx.ModelProto`.
    """
    for node in model.graph.node:
        low, high = [*node.input[1:3], "", ""][:2]
        if node.op_type == "Clip" and bool(low) != bool(high):
            node.op_type = "Max" if low else "Min"
            given = [node.input[0], low or high]
            del node.input[:], node.attribute[:]
            node.input.extend(given)
