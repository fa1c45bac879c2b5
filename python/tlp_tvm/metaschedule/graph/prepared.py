"""An exported network in the form that MetaSchedule is good at, before it is split into tasks."""

from __future__ import annotations

from typing import Any

from tlp_tvm.metaschedule.loading.locate import load_tvm

LAYOUTS = {"relax.nn.conv2d": ["NHWC", "HWIO"]}
"""Channels last, which loops of any image size are vectorised over, and which the shipped model knows."""


def prepared(module: Any, parameters: dict[str, Any]) -> Any:
    """Fold batch norms into convolutions, and bring these to channels last.

    Args:
        module: Relax module.
        parameters: by name; they become constants of it.

    Returns:
        A Relax module that takes the network's inputs alone.
    """
    tvm = load_tvm()
    from tvm.relax import transform

    bound = tvm.transform.Sequential(
        [
            transform.BindParams("main", parameters),
            transform.FoldBatchnormToConv2D(),
            transform.DecomposeOpsForInference(),
            transform.FoldConstant(),
        ]
    )(module)
    return tvm.transform.Sequential(
        [
            transform.FoldConstant(),
            transform.CanonicalizeBindings(),
            transform.DeadCodeElimination(),
        ]
    )(_channels_last(bound))


def _channels_last(module: Any) -> Any:
    """The same with channels last; as it is where TVM fails at that, as on a pooling of one axis, in Swin."""
    from tvm.relax import transform

    try:
        return transform.ConvertLayout(LAYOUTS)(module)
    except RuntimeError:  # std::bad_alloc among others
        return module
