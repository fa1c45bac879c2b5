"""What is changed in a program that torch exported, before TVM's importer reads it; it computes the same."""

from __future__ import annotations

from typing import Any

_SUMS = ("cumsum", "cumprod", "sum", "prod")


def repair(program: Any) -> None:
    """Change a program in place, where TVM would compute something else, or too much.

    Args:
        program: `torch.export.ExportedProgram`.
    """
    import torch

    aten = torch.ops.aten
    sums = {getattr(aten, name) for name in _SUMS}
    for node in list(program.graph.nodes):
        packet = getattr(node.target, "overloadpacket", None) if node.op == "call_function" else None
        if packet in sums:
            _count_truths(program.graph, node)
        elif packet is aten.avg_pool2d:
            _cut_window(node)


def _count_truths(graph: Any, node: Any) -> None:
    """A sum over truth values is one over 64-bit integers, as torch has it; LLVM knows none of truth values.

    The causal masks of decoders in `transformers` have one. The same for integers narrower than their sum.
    """
    import torch

    summed = node.args[0]
    given, result = summed.meta["val"], node.meta["val"]
    if given.dtype == result.dtype or given.is_floating_point():
        return
    with graph.inserting_before(node):
        cast = graph.call_function(torch.ops.aten._to_copy.default, (summed,), {"dtype": result.dtype})
    cast.meta["val"] = given.to(result.dtype)
    node.replace_input_with(summed, cast)


def _cut_window(node: Any) -> None:
    """A mean over a window that is larger than the image is one over the image.

    EfficientNet in `transformers` ends in one of 1280 x 1280 numbers on 7 x 7, in which TVM visits them all.
    """
    names = ("image", "kernel", "stride", "padding", "ceil", "counts_padding", "divisor")
    named = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    image, kernel = list(node.args[0].meta["val"].shape[-2:]), list(named["kernel"])
    kernel *= 2 if len(kernel) == 1 else 1
    fixed = all(isinstance(extent, int) for extent in image)
    if not fixed or any(named.get("padding", [0])) or named.get("divisor") is not None:
        return
    if kernel != image and all(window >= extent for window, extent in zip(kernel, image, strict=True)):
        node.args, node.kwargs = (node.args[0], image, image), {}
