"""An exported network in the form that MetaSchedule is good at, before it is split into tasks."""

from __future__ import annotations

from typing import Any

from tlp_tvm.metaschedule.graph.constants import with_constants_folded
from tlp_tvm.metaschedule.graph.means import with_means_as_products, with_means_for_pools
from tlp_tvm.metaschedule.graph.paddings import with_paddings_folded
from tlp_tvm.metaschedule.graph.pixels import with_products_for_pixels
from tlp_tvm.metaschedule.graph.reshapes import with_reshapes_behind
from tlp_tvm.metaschedule.graph.transposes import with_channels_last, with_transposes_behind
from tlp_tvm.metaschedule.loading.locate import load_tvm

LAYOUTS = {"relax.nn.conv2d": ["NHWC", "HWIO"]}
"""Channels last, which loops of any image size are vectorised over, and which the shipped model knows."""

WAY = "batch norms and paddings folded, channels last throughout, products of matrices where they are"
"""What graphs depend on beside network and programs: caches are keyed by it."""


def prepared(module: Any, parameters: dict[str, Any]) -> Any:
    """Fold batch norms and paddings into convolutions, bring these to channels last, take means by products.

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
        ]
    )(module)
    folded = with_paddings_folded(with_constants_folded(with_means_for_pools(bound)))
    last = with_transposes_behind(with_constants_folded(_channels_last(folded)))
    return tvm.transform.Sequential(
        [
            transform.FoldConstant(),
            transform.CanonicalizeBindings(),
            transform.DeadCodeElimination(),
        ]
    )(with_reshapes_behind(with_means_as_products(with_products_for_pixels(last))))


def _channels_last(module: Any) -> Any:
    """The same with channels last; by us, a convolution at a time, where TVM fails at that, as in Swin."""
    from tvm.relax import transform

    try:
        return transform.ConvertLayout(LAYOUTS)(module)
    except RuntimeError:  # std::bad_alloc among others
        return with_channels_last(module)
