"""Names of the built-in networks, which both frameworks build.

A name is an architecture, and where it matters an input size and a batch:
"resnet_18-240-b4" is one. Size and batch may be left out, and `-` stands for `_` too: "resnet-18" is
"resnet_18-224".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tlp_tvm.errors import NetworkError


@dataclass(frozen=True)
class Architecture:
    """A network but for the size of its input.

    Attributes:
        family: networks of one family share operators; a fair split keeps them together where it can.
        split: "test" for the networks that the project's evaluation holds out.
        size: side of the image in pixels, or sequence length in tokens; None where the network has but one.
        batch: inputs at a time, unless the name says otherwise.
    """

    family: str
    split: Literal["train", "test"]
    size: int | None = None
    batch: int = 1


def canonical_name(name: str) -> str:
    """The full name of a built-in network, as datasets have it.

    Args:
        name: e.g. "resnet-18", which is "resnet_18-224".

    Raises:
        NetworkError: no network has that name.
    """
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
        "optionally with input size and batch: resnet_18-240-b4"
    )


ARCHITECTURES = {
    "resnet_18": Architecture("resnet", "train", 224),
    "resnet_34": Architecture("resnet", "train", 224),
    "resnet_50": Architecture("resnet", "test", 224),
    "mobilenet": Architecture("mobilenet", "train", 224),
    "vgg_11": Architecture("vgg", "train"),
    "squeezenet": Architecture("squeezenet", "train"),
    "densenet_121": Architecture("densenet", "train"),
    "inception_v3": Architecture("inception", "train"),
    "dcgan": Architecture("dcgan", "train"),
    "mlp": Architecture("mlp", "train", batch=16),
    "dqn": Architecture("dqn", "train"),
    "bert_tiny": Architecture("bert", "test", 128),
    "bert_mini": Architecture("bert", "train", 128),
    "bert_small": Architecture("bert", "train", 128),
    "bert_base": Architecture("bert", "test", 128),
    "bert_large": Architecture("bert", "train", 128),
    "gpt_like": Architecture("gpt", "train", 256),
    "vit_tiny": Architecture("vit", "train", 196),
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
