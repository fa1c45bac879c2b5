"""Convolutions and poolings with channels last, which files have first; and no gates in weights.

Ansor vectorises the last axis. A convolution in groups of several channels, as ResNeXt and RegNet have them,
finds the group of a channel by a division; where tiles and groups divide each other the division is outside
the innermost loops, and a few programs measured find such tiles.

TVM moves any factor of a channel into the weights of the convolution after
it. A batch norm's is gone then; a gate of squeeze and excitation, which is computed anew each time, makes
weights that are multiplied and packed anew each time: 221,184 numbers instead of 56,448 in a late layer of
EfficientNet-B0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tlp_tvm.ansor.graph.constants import folding_pass
from tlp_tvm.ansor.graph.replacing import with_calls_replaced
from tlp_tvm.ansor.loading.locate import load_tvm

_IMAGES = {
    "nn.conv2d": ["NHWC", "default"],
    **{
        f"nn.{pool}": ["NHWC"]
        for pool in ("max_pool2d", "avg_pool2d", "global_avg_pool2d", "adaptive_avg_pool2d")
    },
}
_VOLUMES = {"nn.conv3d": ["NDHWC", "default"]}
"""Operators whose layout TVM converts, and to what; operators beside them follow."""


def channels_last(module: Any) -> Any:
    """Convert a network whose convolutions of images are dense or depthwise.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    found = _calls(module, "nn.conv2d")
    return _converted(module, _IMAGES) if found and not any(_in_groups(each) for each in found) else module


def channels_last_in_groups(module: Any) -> Any:
    """Convert a network with a convolution of images whose groups have several channels each.

    Args:
        module: Relay module.

    Returns:
        The module, with types; as it was where TVM is too old for such convolutions.
    """
    known = hasattr(load_tvm().topi.nn, "group_conv2d_nhwc")
    if known and any(_in_groups(each) for each in _calls(module, "nn.conv2d")):
        return _converted(module, _IMAGES)
    return module


def channels_last_in_volumes(module: Any) -> Any:
    """Convert a network of dense convolutions of volumes, as of videos.

    Args:
        module: Relay module.

    Returns:
        The module, with types.
    """
    found = _calls(module, "nn.conv3d")
    dense = all(int(each.attrs.groups) == 1 for each in found)
    return _converted(module, _VOLUMES) if found and dense else module


def _converted(module: Any, layouts: dict[str, list[str]]) -> Any:
    tvm = load_tvm()
    relay = tvm.relay
    passes = [
        relay.transform.InferType(),
        relay.transform.ConvertLayout(layouts),
        folding_pass(),
    ]
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential(passes)(module)


def with_gates_kept(module: Any) -> Any:
    """Keep factors that are computed anew each time out of weights that are larger than the activations.

    Args:
        module: Relay module.

    Returns:
        The module, with types. An identity that no factor passes stays in it, as a build folds factors once
        more; TVM takes it out when it fuses operators.
    """
    return with_calls_replaced(module, ["nn.conv2d"], _fenced)


def _fenced(call: Any, arguments: Sequence[Any]) -> Any:
    """A convolution whose input keeps its factor."""
    relay = load_tvm().relay
    scaled = call.args[0]
    if not isinstance(scaled, relay.Call) or scaled.op != relay.op.get("multiply"):
        return None
    computed = any(
        not isinstance(factor, relay.Constant) and _numbers(factor) < _numbers(scaled)
        for factor in scaled.args
    )
    if not computed or _numbers(call.args[1]) <= _numbers(scaled):
        return None
    return relay.Call(call.op, [relay.annotation.stop_fusion(arguments[0]), arguments[1]], call.attrs)


def _numbers(expression: Any) -> int:
    return math.prod(int(extent) for extent in expression.checked_type.shape)


def _calls(module: Any, operator: str) -> list[Any]:
    relay = load_tvm().relay
    found = []

    def visit(expression: Any) -> None:
        if isinstance(expression, relay.Call) and expression.op == relay.op.get(operator):
            found.append(expression)

    relay.analysis.post_order_visit(relay.transform.InferType()(module)["main"], visit)
    return found


def _in_groups(call: Any) -> bool:
    """Whether a convolution is neither dense nor depthwise."""
    groups = int(call.attrs.groups)
    channels = int(call.checked_type.shape[str(call.attrs.data_layout).index("C")])
    data = call.args[0].checked_type.shape
    entering = int(data[str(call.attrs.data_layout).index("C")])
    return groups != 1 and not groups == channels == entering
