"""Networks by name: built-in ones, without a download, and those in files (`network_files`).

The built-in ones are those of `tvm.relay.testing` and transformer encoders. A name is an architecture, and
where it matters an input size and a batch: "resnet_18-240-b4". Size and batch may be left out, and `-` stands
for `_` too: "resnet-18" is "resnet_18-224".
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.network_files import Loaded, Shapes, is_network_file, load_network_file
from tlp_tvm.ansor.networks.transformer import transformer_layer
from tlp_tvm.errors import NetworkError

Builder = Callable[[int, int], tuple[Any, dict[str, Any]]]
"""Function of size (0 where there is but one) and batch that gives a Relay module and its parameters."""


@dataclass(frozen=True)
class Architecture:
    """A network but for the size of its input.

    Attributes:
        family: networks of one family share operators; a fair split keeps them together where it can.
        split: "test" for the networks that the project's evaluation holds out.
        build: makes the network.
        size: side of the image in pixels, or sequence length in tokens; None where the network has but one.
        batch: inputs at a time, unless the name says otherwise.
    """

    family: str
    split: Literal["train", "test"]
    build: Builder
    size: int | None = None
    batch: int = 1


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
            f"{name_or_path}: expected no --shape for a built-in network, found one of "
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
        module, parameters = ARCHITECTURES[architecture].build(size, batch)
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
    key, size, batch = parse_name(name)
    architecture = ARCHITECTURES[key]
    sized = key if architecture.size is None else f"{key}-{size}"
    return sized if batch == architecture.batch else f"{sized}-b{batch}"


def architecture_of(name: str) -> Architecture:
    """Family, split and defaults of a network.

    Raises:
        NetworkError: no network has that name.
    """
    return ARCHITECTURES[parse_name(name)[0]]


def split_of(name: str) -> Literal["train", "test"]:
    """The split of a network; "train" for files and names that are no built-in ones.

    Args:
        name: of a network, or the path of a file.
    """
    try:
        return architecture_of(name).split
    except NetworkError:
        return "train"


def parse_name(name: str) -> tuple[str, int, int]:
    """The key of `ARCHITECTURES`, the size (0 where there is but one) and the batch that a name means.

    Raises:
        NetworkError: no network has that name; says which do.
    """
    for key, architecture in ARCHITECTURES.items():
        spelling = re.escape(key).replace("_", "[_-]")
        match = re.fullmatch(rf"{spelling}(?:-(\d+))?(?:-b(\d+))?", name)
        if match and not (match[1] and architecture.size is None):
            return key, int(match[1] or architecture.size or 0), int(match[2] or architecture.batch)
    raise NetworkError(
        f'expected the name of a network, found "{name}"; choose one of {", ".join(ARCHITECTURES)}, '
        "with an input size and a batch if you like: resnet_18-240-b4"
    )


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


ARCHITECTURES = {
    "resnet_18": Architecture("resnet", "train", _relay_testing("resnet", layout="NHWC", num_layers=18), 224),
    "resnet_34": Architecture("resnet", "train", _relay_testing("resnet", layout="NHWC", num_layers=34), 224),
    "resnet_50": Architecture("resnet", "test", _relay_testing("resnet", layout="NHWC", num_layers=50), 224),
    "mobilenet": Architecture("mobilenet", "train", _relay_testing("mobilenet", layout="NHWC"), 224),
    "vgg_11": Architecture("vgg", "train", _relay_testing("vgg", num_layers=11)),
    "squeezenet": Architecture("squeezenet", "train", _relay_testing("squeezenet")),
    "densenet_121": Architecture("densenet", "train", _relay_testing("densenet")),
    "inception_v3": Architecture("inception", "train", _relay_testing("inception_v3")),
    "dcgan": Architecture("dcgan", "train", _relay_testing("dcgan", layout="NHWC")),
    "mlp": Architecture("mlp", "train", _relay_testing("mlp"), batch=16),
    "dqn": Architecture("dqn", "train", _relay_testing("dqn", layout="NHWC", image_shape=(84, 84, 4))),
    "bert_tiny": Architecture("bert", "test", _transformer(128, 2, 512), 128),
    "bert_mini": Architecture("bert", "train", _transformer(256, 4, 1024), 128),
    "bert_small": Architecture("bert", "train", _transformer(512, 8, 2048), 128),
    "bert_base": Architecture("bert", "test", _transformer(768, 12, 3072), 128),
    "bert_large": Architecture("bert", "train", _transformer(1024, 16, 4096), 128),
    "gpt_like": Architecture("gpt", "train", _transformer(384, 6, 1536), 256),
    "vit_tiny": Architecture("vit", "train", _transformer(192, 3, 768), 196),
}
"""Key to architecture; the transformers are one layer each, as all layers have the same tasks."""

NETWORKS: dict[str, Architecture] = {
    name: architecture_of(name)
    for name in (
        "resnet_18-224",
        "resnet_18-240-b4",
        "resnet_34-256",
        "mobilenet-224",
        "mobilenet-192-b4",
        "vgg_11",
        "squeezenet",
        "densenet_121",
        "dcgan",
        "mlp",
        "bert_small-128",
        "bert_mini-64-b4",
        "gpt_like-256",
        "resnet_50-224",
        "bert_base-128",
        "bert_tiny-128",
    )
}
"""The networks of the project's own dataset; `load_network` knows them in any size and batch."""
