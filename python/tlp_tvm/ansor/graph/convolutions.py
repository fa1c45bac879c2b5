"""Convolutions and poolings with channels last: files have them first, which Ansor vectorises badly."""

from __future__ import annotations

from typing import Any

from tlp_tvm.ansor.graph.constants import folding_pass
from tlp_tvm.ansor.loading.locate import load_tvm

_POOLS = ("nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.adaptive_avg_pool2d")


def channels_last(module: Any) -> Any:
    """Convert where every convolution can be.

    TVM has no convolution with channels last whose groups have several channels each: a network with one
    stays as it is.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    tvm = load_tvm()
    relay = tvm.relay
    found = _convolutions(module)
    if not found or any(not _can_be_last(each) for each in found):
        return module
    layouts = {"nn.conv2d": ["NHWC", "default"], **{name: ["NHWC"] for name in _POOLS}}
    passes = [
        relay.transform.InferType(),
        relay.transform.ConvertLayout(layouts),
        folding_pass(),
    ]
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential(passes)(module)


def _convolutions(module: Any) -> list[Any]:
    relay = load_tvm().relay
    found = []

    def visit(expression: Any) -> None:
        if isinstance(expression, relay.Call) and expression.op == relay.op.get("nn.conv2d"):
            found.append(expression)

    relay.analysis.post_order_visit(relay.transform.InferType()(module)["main"], visit)
    return found


def _can_be_last(call: Any) -> bool:
    groups = int(call.attrs.groups)
    channels = int(call.checked_type.shape[str(call.attrs.data_layout).index("C")])
    data = call.args[0].checked_type.shape
    entering = int(data[str(call.attrs.data_layout).index("C")])
    return groups == 1 or groups == channels == entering
