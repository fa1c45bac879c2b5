"""The networks of the scoreboard: built from `transformers` configurations with random weights, offline.

    python benchmarks/network_exports.py NAME FOLDER

writes FOLDER/NAME.pt (TorchScript) and FOLDER/NAME.pt2 (torch.export).
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

IMAGE = (1, 3, 224, 224)


@dataclass(frozen=True)
class Network:
    """One network.

    Attributes:
        title: for the table.
        make: gives the module; `transformers` is imported inside.
        shape: of its one input.
        ids: the input's integers are below this; 0 for an input of real numbers.
    """

    title: str
    make: Callable[[], torch.nn.Module]
    shape: tuple[int, ...]
    ids: int = 0


class FirstOutput(torch.nn.Module):
    """A network of `transformers` with one input and one output."""

    def __init__(self, inner: torch.nn.Module, named: str, masked: bool = False) -> None:
        super().__init__()
        self.inner = inner
        self.named = named
        self.masked = masked

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The first output: logits, or the last hidden state."""
        mask = {"attention_mask": torch.ones_like(x)} if self.masked else {}
        first: torch.Tensor = self.inner(**{self.named: x}, **mask, return_dict=False)[0]
        return first


def image(kind: str, **settings: Any) -> Callable[[], torch.nn.Module]:
    """An image classifier of `transformers`, by the begin of its classes' names."""

    def make() -> torch.nn.Module:
        import transformers

        config = getattr(transformers, f"{kind}Config")(**settings)
        network = getattr(transformers, f"{kind}ForImageClassification")(config)
        return FirstOutput(network, "pixel_values")

    return make


def text(kind: str, **settings: Any) -> Callable[[], torch.nn.Module]:
    """A transformer on token ids; GPT-2 looks for a mask, and would else compare positions."""

    def make() -> torch.nn.Module:
        import transformers

        config = getattr(transformers, f"{kind}Config")(
            **settings, attn_implementation="eager", use_cache=False
        )
        return FirstOutput(getattr(transformers, f"{kind}Model")(config), "input_ids", masked=kind == "GPT2")

    return make


def _mlp() -> torch.nn.Module:
    layers: list[torch.nn.Module] = []
    for inputs in (784, 2048, 2048):
        layers += [torch.nn.Linear(inputs, 2048), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(2048, 10))


_RESNET_18 = {
    "depths": [2, 2, 2, 2],
    "hidden_sizes": [64, 128, 256, 512],
    "layer_type": "basic",
    "embedding_size": 64,
}
_B0 = {
    "width_coefficient": 1.0,
    "depth_coefficient": 1.0,
    "image_size": 224,
    "hidden_dim": 1280,
    "dropout_rate": 0.2,
}
_SMALL = {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}
_MINI = {**_SMALL, "num_attention_heads": 12, "num_hidden_layers": 6}

NETWORKS: dict[str, Network] = {
    "mlp": Network("MLP, 4 layers, 2048 wide, batch 16", _mlp, (16, 784)),
    "resnet_18": Network("ResNet-18", image("ResNet", **_RESNET_18), IMAGE),
    "resnet_50": Network("ResNet-50", image("ResNet"), IMAGE),
    "mobilenet_v2": Network("MobileNetV2", image("MobileNetV2"), IMAGE),
    "efficientnet_b0": Network("EfficientNet-B0", image("EfficientNet", **_B0), IMAGE),
    "convnext_t": Network("ConvNeXt-T", image("ConvNext"), IMAGE),
    "vit_s": Network("ViT-S/16", image("ViT", **_SMALL, attn_implementation="eager"), IMAGE),
    "minilm": Network("MiniLM-L6, 128 tokens", text("Bert", **_MINI), (1, 128), 30522),
    "bert_base": Network("BERT-base, 128 tokens", text("Bert"), (1, 128), 30522),
    "gpt2": Network("GPT-2 small, 64 tokens", text("GPT2"), (1, 64), 50257),
}
"""By the name of the file; images have 224 x 224 pixels."""


TRACED, EXPORTED = ".pt", ".pt2"
"""Ends of the files: TorchScript's, which Ansor's side reads, and torch.export's, for MetaSchedule's."""


def write(name: str, network: Network, folder: Path, ends: Sequence[str] = (TRACED, EXPORTED)) -> None:
    """Write the files of a network; the same weights at every call.

    Args:
        name: of the files.
        network: what they hold.
        folder: made if it is not there.
        ends: of the files to write.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    module = network.make().eval()
    for inner in module.modules():
        if isinstance(inner, torch.nn.BatchNorm2d) and inner.running_mean is not None:
            # As trained ones have them: at 0 and 1 a batch norm is nothing.
            inner.running_mean.normal_(0, 0.1)
            assert inner.running_var is not None
            inner.running_var.uniform_(0.5, 1.5)
    x = torch.randint(network.ids, network.shape) if network.ids else torch.randn(network.shape)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing is called deprecated, and warns of sizes that it fixes
        if TRACED in ends:
            traced = torch.jit.trace(module, x, check_trace=False)  # type: ignore[no-untyped-call]
            traced.save(str(folder / f"{name}{TRACED}"))
        if EXPORTED in ends:
            torch.export.save(torch.export.export(module, (x,)), folder / f"{name}{EXPORTED}")


def write_missing(networks: Mapping[str, Network], about: str) -> None:
    """Write files of networks to the folder that the command line names; what is there stays.

    Args:
        networks: by the name of the file.
        about: what the command does.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--exported", action="store_true", help="those of torch.export, for MetaSchedule")
    asked = parser.parse_args()
    end = EXPORTED if asked.exported else TRACED
    for name, network in networks.items():
        if not (file := asked.folder / f"{name}{end}").exists():
            write(name, network, asked.folder, [end])
            sys.stdout.write(f"{file}\n")


def main() -> None:
    """Export what is asked for."""
    parser = argparse.ArgumentParser(description="Write a network of the scoreboard.")
    parser.add_argument("name", choices=list(NETWORKS))
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    write(asked.name, NETWORKS[asked.name], asked.folder)


if __name__ == "__main__":
    main()
