"""Networks by name: built-in ones, without a download, and those in files (`network_files`).

The built-in ones are those of `tvm.relay.testing` and transformer encoders; `network_names` has their names.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm import network_names
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.network_files import Loaded, Shapes, is_network_file, load_network_file
from tlp_tvm.ansor.networks.transformer import transformer_layer
from tlp_tvm.errors import NetworkError
from tlp_tvm.network_names import parse_name

Builder = Callable[[int, int], tuple[Any, dict[str, Any]]]
"""Function of size (0 where there is but one) and batch that gives a Relay module and its parameters."""


def network_from(name_or_path: str, shapes: Shapes | None = None) -> Loaded:
    """Build a built-in network, or read one from a file.

    Args:
        name_or_path: a built-in name, or the path of a file as `load_network_file` reads it.
        shapes: of inputs that the file leaves open, by name.

    Returns:
        The Relay module, its parameters by name, and the shapes of its inputs by name.

    Raises:
        NetworkError: no network has that name, the file cannot be read, or shapes for a built-in network.
    """
    if is_network_file(name_or_path):
        return load_network_file(name_or_path, shapes)
    if shapes:
        raise NetworkError(
            f"{name_or_path}: expected no `shapes` for a built-in network, found one of "
            f'"{next(iter(shapes))}"; its size and batch go into its name, as in resnet_18-240-b4'
        )
    return load_network(name_or_path)


def load_network(name: str) -> Loaded:
    """Build a built-in network with random parameters, the same at every call.

    Args:
        name: e.g. "resnet_18-224", "resnet-18" or "bert_tiny-64-b4".

    Returns:
        The Relay module, its parameters by name, and the shapes of its inputs by name.

    Raises:
        NetworkError: no network has that name; says which do.
    """
    architecture, size, batch = parse_name(name)
    random_state = np.random.get_state()  # noqa: NPY002 - relay.testing seeds NumPy's global generator
    try:
        module, parameters = BUILDERS[architecture](size, batch)
    finally:
        np.random.set_state(random_state)  # noqa: NPY002
    inputs = {
        variable.name_hint: tuple(int(extent) for extent in variable.type_annotation.shape)
        for variable in module["main"].params
        if variable.name_hint not in parameters
    }
    return module, parameters, inputs


def canonical_name(name: str) -> str:
    """The full name of a network, as datasets have it.

    Args:
        name: e.g. "resnet-18", which is "resnet_18-224"; or a path, whose name without its end it is.

    Raises:
        NetworkError: no network has that name.
    """
    if is_network_file(name):
        return Path(name).stem
    return network_names.canonical_name(name)


def _relay_testing(network: str, **settings: Any) -> Builder:
    """A builder out of a module of `tvm.relay.testing`, which imports pytest."""

    def build(size: int, batch: int) -> tuple[Any, dict[str, Any]]:
        load_tvm()
        module = importlib.import_module(f"tvm.relay.testing.{network}")
        image = {"image_shape": (size, size, 3)} if size else {}
        relay_module, parameters = module.get_workload(batch_size=batch, **image, **settings)
        return relay_module, parameters

    return build


def _transformer(hidden: int, heads: int, feed_forward: int) -> Builder:
    def build(size: int, batch: int) -> tuple[Any, dict[str, Any]]:
        return transformer_layer(size, hidden, heads, feed_forward, batch)

    return build


BUILDERS: dict[str, Builder] = {
    "resnet_18": _relay_testing("resnet", layout="NHWC", num_layers=18),
    "resnet_34": _relay_testing("resnet", layout="NHWC", num_layers=34),
    "resnet_50": _relay_testing("resnet", layout="NHWC", num_layers=50),
    "mobilenet": _relay_testing("mobilenet", layout="NHWC"),
    "vgg_11": _relay_testing("vgg", num_layers=11),
    "squeezenet": _relay_testing("squeezenet"),
    "densenet_121": _relay_testing("densenet"),
    "inception_v3": _relay_testing("inception_v3"),
    "dcgan": _relay_testing("dcgan", layout="NHWC"),
    "mlp": _relay_testing("mlp"),
    "dqn": _relay_testing("dqn", layout="NHWC", image_shape=(84, 84, 4)),
    "bert_tiny": _transformer(128, 2, 512),
    "bert_mini": _transformer(256, 4, 1024),
    "bert_small": _transformer(512, 8, 2048),
    "bert_base": _transformer(768, 12, 3072),
    "bert_large": _transformer(1024, 16, 4096),
    "gpt_like": _transformer(384, 6, 1536),
    "vit_tiny": _transformer(192, 3, 768),
}
"""Key of `network_names.ARCHITECTURES` -> what makes the network."""
