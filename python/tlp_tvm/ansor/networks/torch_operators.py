"""Operators of TorchScript that TVM's importer lacks, made of those that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm


def missing_operators() -> dict[str, Callable[[Any, Any], Any]]:
    """Operator to its converter, for `from_pytorch`."""
    return {"aten::_convolution_mode": _convolution_mode}


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
