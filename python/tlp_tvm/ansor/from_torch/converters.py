"""Operators of TorchScript that TVM's importer lacks, or gets wrong, made of those that it has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tlp_tvm.ansor.from_torch.decompositions import Converter, decomposing
from tlp_tvm.ansor.from_torch.graphs import inlined, keep_parameters_apart, show_changes
from tlp_tvm.ansor.loading.locate import load_tvm


def converters_for(script: Any) -> dict[str, Converter]:
    """Operator to its converter, for `from_pytorch`; also of those that it has and gets wrong.

    Args:
        script: of TorchScript, whose graph is changed so that the importer reads it right.
    """
    tvm = load_tvm()
    graph = inlined(script)
    keep_parameters_apart(graph)
    show_changes(graph)
    importer = tvm.relay.frontend.pytorch.PyTorchOpConverter(
        tvm.relay.prelude.Prelude(tvm.IRModule()), "float32"
    )
    known = importer.convert_map
    ours = {
        **{f"aten::{name}": _whole(known[f"aten::{name}"]) for name in _INDICES},
        **{f"aten::{name}": _of_bits(importer, *which) for name, which in _BITS.items()},
        "aten::_convolution_mode": lambda inputs, types: _convolution_mode(importer, inputs, types),
        "aten::_to_copy": lambda inputs, types: _cast([*inputs[:2], None], types, known["aten::to"]),
        "aten::cumprod": lambda inputs, types: tvm.relay.cumprod(inputs[0], inputs[1]),
        "aten::numel": lambda inputs, types: math.prod(map(int, importer.infer_shape(inputs[0]))),
        "aten::scaled_dot_product_attention": lambda inputs, types: _attention(importer, inputs, types),
        "aten::sort": lambda inputs, types: _whole_second(known["aten::sort"](inputs, types)),
        "aten::to": lambda inputs, types: _cast(inputs, types, known["aten::to"]),
        "prim::NumToTensor": lambda inputs, types: _number(known["prim::NumToTensor"](inputs, types)),
    }
    return {**ours, **decomposing(graph, {**known, **ours}, importer.infer_type)}


_INDICES = ("argmax", "argmin", "argsort", "one_hot")
"""What is of 64 bits in torch, and of 32 as the importer has it."""

_BITS = {
    "__and__": ("logical_and", "bitwise_and"),
    "__or__": ("logical_or", "bitwise_or"),
    "__xor__": ("logical_xor", "bitwise_xor"),
    "bitwise_and": ("logical_and", "bitwise_and"),
    "bitwise_or": ("logical_or", "bitwise_or"),
    "bitwise_xor": ("logical_xor", "bitwise_xor"),
}
"""Operators, by what they are for truth values and for whole numbers."""

_OTHER_TYPES = {0: "uint8", 1: "int8", 2: "int16", 11: "bool"}
"""By torch's numbers, types of which the importer makes no cast."""


def _whole(known: Converter) -> Converter:
    return lambda inputs, types: load_tvm().relay.cast(known(inputs, types), "int64")


def _number(value: Any) -> Any:
    """Python's, where the importer has NumPy's, which it cannot go on with."""
    return value.item() if isinstance(value, np.generic) else value


def _whole_second(pair: Any) -> tuple[Any, Any]:
    return pair[0], load_tvm().relay.cast(pair[1], "int64")


def _of_bits(importer: Any, of_truths: str, of_numbers: str) -> Converter:
    def convert(inputs: Any, types: Any) -> Any:
        left, right = importer.pytorch_promote_types(inputs[:2], types[:2])
        name = of_truths if str(importer.infer_type(left).dtype) == "bool" else of_numbers
        return getattr(load_tvm().relay, name)(left, right)

    return convert


def _cast(inputs: Any, types: Any, known: Converter) -> Any:
    """A number of another type, of those too that the importer leaves as they are."""
    kind = inputs[1] if inputs[1] is not None and not isinstance(inputs[1], str) else inputs[2]
    relay = load_tvm().relay
    if kind not in _OTHER_TYPES or not isinstance(inputs[0], relay.Expr):
        return known(inputs, types)
    return relay.cast(inputs[0], _OTHER_TYPES[kind])


def _convolution_mode(importer: Any, inputs: Any, types: Any) -> Any:
    """A convolution whose padding is a word, "valid" or "same"; "same" may pad the end by one more."""
    relay = load_tvm().relay
    data, weight, bias, strides, mode, dilation, groups = inputs
    kernel = importer.infer_shape(weight)[2:]
    spread = [
        step * (extent - 1) if mode == "same" else 0 for step, extent in zip(dilation, kernel, strict=True)
    ]
    padding = [extent // 2 for extent in spread]
    if any(extent % 2 for extent in spread):
        around = [(0, 0), (0, 0), *((extent // 2, extent - extent // 2) for extent in spread)]
        data, padding = relay.nn.pad(data, around), [0] * len(kernel)
    usual = [data, weight, bias, strides, padding, dilation, False, [0] * len(kernel), groups]
    return importer.convolution(usual, types)


def _attention(importer: Any, inputs: Any, types: Any) -> Any:
    """Scaled products whose mask says which pairs count, and whose scale is given.

    TVM's importer adds a mask of truth values as ones and zeros, and since torch has an eighth argument it
    takes the usual scale.
    """
    relay = load_tvm().relay
    mask, scale = inputs[3], inputs[6] if len(inputs) > 6 else None
    if mask is not None and str(importer.infer_type(mask).dtype) == "bool":
        nothing, least = (relay.const(value, "float32") for value in (0.0, float("-inf")))
        mask = relay.where(mask, nothing, least)
    kinds = [*types[:3], "float32", *types[4:6], "float"]
    return importer.scaled_dot_product_attention([*inputs[:3], mask, *inputs[4:6], scale], kinds)
