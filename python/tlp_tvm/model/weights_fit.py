"""Checks that the weights of a model file fit the network that its settings describe."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import pad

from tlp_tvm.errors import ModelFileError
from tlp_tvm.model.config import ModelConfig
from tlp_tvm.model.tlp import TLP, TLPSettings

CURE = "restore the file, or train the model again"

FIRST = ".widen.0.weight"
"""Ending of the names of weights that columns of embeddings are multiplied by, (hidden, E)."""


def with_later_columns(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights of a model with zeros for the columns that its layout has got since: its scores are the same.

    Args:
        config: of the model.
        weights: as its file has them.
    """
    if not config.columns:
        return dict(weights)
    more = config.layout.width - config.columns
    return {
        name: pad(tensor, (0, more))
        if name.endswith(FIRST) and tensor.shape[1:] == (config.columns,)
        else tensor
        for name, tensor in weights.items()
    }


def check_weights(settings: TLPSettings, weights: Mapping[str, Tensor], where: str) -> None:
    """Check every tensor before a network is built from them.

    Args:
        settings: of the file.
        weights: the tensors of the file.
        where: names the file in errors.

    Raises:
        ModelFileError: a tensor is missing, unexpected, of another shape or type, or not finite.
    """
    # Count first: building settings with thousands of layers would take long.
    for name, expected, prefix in (
        ("members", settings.members, "members."),
        ("layers", settings.layers, "members.0.layers."),
        ("heads", settings.heads, "members.0.heads."),
    ):
        found = len({rest.removeprefix(prefix).split(".")[0] for rest in weights if rest.startswith(prefix)})
        if found != expected:
            raise ModelFileError(
                f"{where}: expected the tensors of {expected} {name}, as the settings say, found those of "
                f"{found}; {CURE}"
            )
    with torch.device("meta"):
        shapes = {name: tuple(tensor.shape) for name, tensor in TLP(settings).state_dict().items()}
    if missing := sorted(shapes.keys() - weights.keys()):
        raise ModelFileError(
            f"{where}: expected the tensors of the model, found no {', '.join(missing[:3])}; {CURE}"
        )
    for name, tensor in sorted(weights.items()):
        shape = shapes.get(name, "no such tensor")
        if shape != tuple(tensor.shape):
            raise ModelFileError(f"{where}: {name}: expected {shape}, found {tuple(tensor.shape)}; {CURE}")
        if not tensor.is_floating_point():
            raise ModelFileError(
                f"{where}: {name}: expected floating-point numbers, found {tensor.dtype}; {CURE}"
            )
        if not bool(torch.isfinite(tensor.to(torch.float32)).all()):
            raise ModelFileError(f"{where}: {name}: expected finite numbers, found others; {CURE}")
