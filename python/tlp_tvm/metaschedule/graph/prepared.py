"""An exported network in the form that MetaSchedule is good at, before it is split into tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tlp_tvm.metaschedule.graph.constants import with_constants_folded
from tlp_tvm.metaschedule.graph.groups import with_groups_apart
from tlp_tvm.metaschedule.graph.means import with_means_as_products, with_means_for_pools
from tlp_tvm.metaschedule.graph.paddings import with_paddings_folded
from tlp_tvm.metaschedule.graph.pixels import with_products_for_pixels
from tlp_tvm.metaschedule.graph.reshapes import with_reshapes_behind
from tlp_tvm.metaschedule.graph.transposes import with_channels_last, with_transposes_behind
from tlp_tvm.metaschedule.graph.zeros_between import without_transposed_convolutions
from tlp_tvm.metaschedule.loading.locate import load_tvm

_IMAGES = {"relax.nn.conv2d": ["NHWC", "HWIO"]}
_OTHERS = {"relax.nn.conv1d": ["NWC", "WIO"], "relax.nn.conv3d": ["NDHWC", "DHWIO"]}
"""Channels last, which loops of any image size are vectorised over, and which the shipped model knows."""

WAY = (
    "batch norms and paddings folded, channels last throughout, of lines and volumes too, products of "
    "matrices where they are, an axis of groups, no zeros between, Winograd's convolutions, scaled and "
    "masked products of attention"
)
"""What graphs depend on beside network and programs: caches are keyed by it."""


def prepared(module: Any, parameters: dict[str, Any], *, earlier: bool = False) -> Any:
    """Fold batch norms and paddings into convolutions, bring these to channels last, take means by products.

    Convolutions in groups have an axis for these, and transposed ones are convolutions.

    Args:
        module: Relax module.
        parameters: by name; they become constants of it.
        earlier: do only what was done until commit 70e24c2: tasks of earlier records are found so.

    Returns:
        A Relax module that takes the network's inputs alone.
    """
    tvm = load_tvm()
    from tvm.relax import transform

    def since(rewrite: Callable[[Any], Any], given: Any) -> Any:
        return given if earlier else rewrite(given)

    bound = tvm.transform.Sequential(
        [
            transform.BindParams("main", parameters),
            transform.FoldBatchnormToConv2D(),
            transform.DecomposeOpsForInference(),
        ]
    )(module)
    folded = since(with_paddings_folded, with_constants_folded(since(with_means_for_pools, bound)))
    images = since(without_transposed_convolutions, _channels_last(folded, earlier))
    last = since(with_transposes_behind, with_constants_folded(images))
    products = with_means_as_products(since(with_products_for_pixels, last))
    apart = since(with_groups_apart, products)
    return tvm.transform.Sequential(
        [
            transform.FoldConstant(),
            transform.CanonicalizeBindings(),
            transform.DeadCodeElimination(),
        ]
    )(since(with_reshapes_behind, apart))


def _channels_last(module: Any, earlier: bool) -> Any:
    """The same with channels last; by us, a convolution at a time, where TVM fails at that, as in Swin."""
    from tvm.relax import transform

    for layouts in (_IMAGES,) if earlier else (_IMAGES | _OTHERS, _IMAGES):
        with contextlib.suppress(RuntimeError):  # std::bad_alloc among others
            module = transform.ConvertLayout(layouts)(module)
            break
    return module if earlier else with_channels_last(module)
