"""Networks that models are trained on, of other shapes than the scoreboard's: exported, then collected.

    python benchmarks/training_networks.py build/training
    tlp-tvm collect build/training/*.pt --out datasets/NAME --programs 48 --evolved 0.75 --model epyc

Their families are residual and mobile convolutions, encoders of text and of images, pyramids and perceptrons.
ConvNeXt, EfficientNet, T5, GPT, grouped and 3-D convolutions teach nothing: they are for judging.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from network_exports import Network, image, text, write_missing

_EAGER: dict[str, Any] = {"attn_implementation": "eager"}
BASIC: dict[str, Any] = {"layer_type": "basic"}
"""Of a ResNet without bottlenecks."""


def bert(width: int, heads: int, tokens: int, batch: int = 1, kind: str = "Bert", **more: Any) -> Network:
    """A layer of an encoder of text."""
    settings = {"hidden_size": width, "num_attention_heads": heads, "intermediate_size": 4 * width}
    return Network(
        f"{kind}, {width} wide", text(kind, **settings, num_hidden_layers=1, **more), (batch, tokens), 2000
    )


def encoder(kind: str, pixels: int, batch: int = 1, **settings: Any) -> Network:
    """A network of images."""
    return Network(kind, image(kind, image_size=pixels, **settings), (batch, 3, pixels, pixels))


def patches(width: int, heads: int, pixels: int, patch: int, batch: int = 1, kind: str = "ViT") -> Network:
    """A layer of an encoder of images in patches."""
    return encoder(
        kind, pixels, batch, hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width,
        patch_size=patch, num_hidden_layers=1, **_EAGER,
    )  # fmt: skip


def resnet(pixels: int, widths: list[int], batch: int = 1, **settings: Any) -> Network:
    """Two residual blocks of each width."""
    deep = {"depths": [2] * len(widths), "hidden_sizes": widths, "embedding_size": 64}
    return Network("ResNet", image("ResNet", **deep, **settings), (batch, 3, pixels, pixels))


def _mlp(*widths: int) -> Callable[[], torch.nn.Module]:
    def make() -> torch.nn.Module:
        layers: list[torch.nn.Module] = []
        for wide, next_wide in pairwise(widths):
            layers += [torch.nn.Linear(wide, next_wide), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers)

    return make


NETWORKS: dict[str, Network] = {
    "resnet_basic-192": resnet(192, [64, 128, 256, 512], **BASIC),
    "resnet_basic-256": resnet(256, [48, 96, 192, 384], **BASIC),
    "resnet_wide-160": resnet(160, [128, 256, 384, 640], **BASIC),
    "resnet_bottleneck-192": resnet(192, [256, 512, 1024, 2048]),
    "resnet_bottleneck-288": resnet(288, [192, 384, 768, 1536]),
    "resnet_basic-224": resnet(224, [48, 96, 192, 384], **BASIC),
    "resnet_wide-224": resnet(224, [96, 192, 320, 640], **BASIC),
    "resnet_bottleneck-224": resnet(224, [192, 384, 768, 1536]),
    "resnet_bottleneck-160-b2": resnet(160, [256, 512, 1024], 2),
    "mobilenet_v1-192": encoder("MobileNetV1", 192),
    "mobilenet_v1-256-half": encoder("MobileNetV1", 256, depth_multiplier=0.5),
    "mobilenet_v1-224-slim": encoder("MobileNetV1", 224, depth_multiplier=0.75),
    "mobilenet_v2-224-wide": encoder("MobileNetV2", 224, depth_multiplier=1.3),
    "mobilenet_v2-192-wide": encoder("MobileNetV2", 192, depth_multiplier=1.4),
    "mobilenet_v2-160-slim": encoder("MobileNetV2", 160, depth_multiplier=0.75),
    "bert-192x64": bert(192, 3, 64),
    "bert-256x96": bert(256, 4, 96),
    "bert-320x197": bert(320, 5, 197),
    "bert-384x48-b4": bert(384, 12, 48, 4),
    "bert-448x160": bert(448, 7, 160),
    "bert-512x256": bert(512, 8, 256),
    "bert-640x80": bert(640, 10, 80),
    "bert-768x32": bert(768, 12, 32),
    "bert-768x192": bert(768, 12, 192),
    "bert-1024x112": bert(1024, 16, 112),
    "electra-256x144": bert(256, 4, 144, kind="Electra", embedding_size=128),
    "vit-192-160": patches(192, 3, 160, 16),
    "vit-256-256": patches(256, 4, 256, 16),
    "vit-512-224-p32": patches(512, 8, 224, 32, 2),
    "deit-320-192": patches(320, 5, 192, 16, kind="DeiT"),
    "swin-192": encoder("Swin", 192, embed_dim=64, depths=[2, 2, 2], num_heads=[2, 4, 8], window_size=6),
    "poolformer-192": encoder("PoolFormer", 192, depths=[1, 1, 1, 1]),
    "mlp-1": Network("MLP", _mlp(512, 1024, 1024, 256), (1, 512)),
    "mlp-8": Network("MLP", _mlp(768, 3072, 768, 64), (8, 768)),
    "mlp-48": Network("MLP", _mlp(640, 1280, 512, 128), (48, 640)),
}
"""By the name of the file."""


if __name__ == "__main__":
    write_missing(NETWORKS, "Write the networks that models are trained on.")
