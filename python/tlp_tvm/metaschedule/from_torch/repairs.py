"""What is changed in a program that torch exported, before TVM's importer reads it; it computes the same."""

from __future__ import annotations

from typing import Any

_SUMS = ("cumsum", "cumprod", "sum", "prod")
_PRODUCTS = ("addmm", "mm", "bmm", "matmul", "baddbmm", "linear", "convolution", "conv1d", "conv2d", "conv3d")


def repair(program: Any) -> None:
    """Change a program in place, where TVM would compute something else, or too much.

    Args:
        program: `torch.export.ExportedProgram`.
    """
    import torch

    aten = torch.ops.aten
    sums = {getattr(aten, name) for name in _SUMS}
    products = {getattr(aten, name) for name in _PRODUCTS}
    for node in list(program.graph.nodes):
        packet = getattr(node.target, "overloadpacket", None) if node.op == "call_function" else None
        if packet in sums:
            _count_truths(program.graph, node)
        elif packet in products and node.meta["val"].dtype != torch.float32:
            _round_product(program.graph, node)
        elif packet in (aten.add, aten.sub, aten.rsub):
            _multiply_factor(program.graph, node)
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


def _multiply_factor(graph: Any, node: Any) -> None:
    """A sum with a factor of its second number, or of the first where it is subtracted from the second."""
    import torch

    numbers, named = list(node.args[:2]), dict(node.kwargs)
    factor = node.args[2] if len(node.args) > 2 else named.pop("alpha", 1)
    if factor == 1:
        return
    aten = torch.ops.aten
    place = 0 if node.target.overloadpacket is aten.rsub else 1
    if isinstance(numbers[place], (int, float)):
        numbers[place] *= factor
    else:
        with graph.inserting_before(node):
            product = graph.call_function(aten.mul.Scalar, (numbers[place], factor))
        product.meta["val"] = numbers[place].meta["val"] * factor
        numbers[place] = product
    node.args, node.kwargs = tuple(numbers), named


def _round_product(graph: Any, node: Any) -> None:
    """TVM's importer takes every product for one in float32: what torch rounds to another type, is rounded.

    A bias of the narrow type is added after that, as torch does; the importer would add it to float32.
    """
    import torch

    aten, target = torch.ops.aten, node.target.overloadpacket
    bias, result = None, node.meta["val"]
    if target in (aten.addmm, aten.baddbmm):
        if node.kwargs:  # a factor of either
            return
        bias, node.args = node.args[0], node.args[1:]
        node.target = aten.mm.default if target is aten.addmm else aten.bmm.default
    elif target not in (aten.mm, aten.bmm, aten.matmul) and len(node.args) > 2:
        bias = node.args[2]
        node.args = (*node.args[:2], None, *node.args[3:])
    with graph.inserting_before(node.next):
        rounded = last = graph.call_function(aten._to_copy.default, (node,), {"dtype": result.dtype})
        if bias is not None:
            behind = result.dim() - 2 if "conv" in target.__name__ else 0
            if behind:
                bias = graph.call_function(aten.view.default, (bias, [-1, *[1] * behind]))
            last = graph.call_function(aten.add.Tensor, (rounded, bias))
    for each in {rounded, last}:
        each.meta["val"] = result
    node.replace_all_uses_with(last, delete_user_cb=lambda user: user is not rounded)


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
