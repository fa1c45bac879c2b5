"""Operators of TorchScript that TVM's importer lacks, or gets wrong, made of those that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm


def missing_operators() -> dict[str, Callable[[Any, Any], Any]]:
    """Operator to its converter, for `from_pytorch`; also of one that it has and gets wrong."""
    return {
        "aten::_convolution_mode": _convolution_mode,
        "aten::scaled_dot_product_attention": _attention,
    }


def _convolution_mode(inputs: Any, types: Any) -> Any:
    """A convolution whose padding is a word, "valid" or "same"; "same" may pad the end by one more."""
    relay = load_tvm().relay
    data, weight, bias, strides, mode, dilation, groups = inputs
    converter = relay.frontend.pytorch.PyTorchOpConverter(None, "float32")
    kernel = converter.infer_shape(weight)[2:]
    spread = [
        step * (extent - 1) if mode == "same" else 0 for step, extent in zip(dilation, kernel, strict=True)
    ]
    padding = [extent // 2 for extent in spread]
    if any(extent % 2 for extent in spread):
        around = [(0, 0), (0, 0), *((extent // 2, extent - extent // 2) for extent in spread)]
        data, padding = relay.nn.pad(data, around), [0] * len(kernel)
    usual = [data, weight, bias, strides, padding, dilation, False, [0] * len(kernel), groups]
    return converter.convolution(usual, types)


def _attention(inputs: Any, types: Any) -> Any:
    """Scaled products whose mask says which pairs count, and whose scale is given.

    TVM's importer adds a mask of truth values as ones and zeros, and since torch has an eighth argument it
    takes the usual scale.
    """
    tvm = load_tvm()
    relay = tvm.relay
    if len(inputs) > 7 and inputs[7]:
        raise NotImplementedError("scaled_dot_product_attention with enable_gqa")
    converter = relay.frontend.pytorch.PyTorchOpConverter(relay.prelude.Prelude(tvm.IRModule()), "float32")
    mask, scale = inputs[3], inputs[6] if len(inputs) > 6 else None
    if mask is not None and str(converter.infer_type(mask).dtype) == "bool":
        nothing, least = (relay.const(value, "float32") for value in (0.0, float("-inf")))
        mask = relay.where(mask, nothing, least)
    kinds = [*types[:3], "float32", *types[4:6], "float"]
    return converter.scaled_dot_product_attention([*inputs[:3], mask, *inputs[4:6], scale], kinds)
