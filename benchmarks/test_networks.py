"""Networks that judge models: of families and kinds of layers that no model has learned from.

    python benchmarks/test_networks.py build/test
    tlp-tvm collect build/test/*.pt --test --out datasets/test-cold --programs 24 --evolved 0.67

ConvNeXt, EfficientNet, T5, GPT, Llama, SegFormer, grouped, 3-D, transposed and dilated convolutions, at
other sizes than the scoreboard's. Models are judged on their programs when a version is made, each time with
a line in docs/results/ledger.md; nothing is chosen by them, nor are their programs by a model that they
judge.
"""

from __future__ import annotations

from typing import Any

import torch
from network_exports import FirstOutput, Network, image, text, write_missing

_EAGER: dict[str, Any] = {"attn_implementation": "eager"}


class Video(torch.nn.Module):
    """Three residual stages of 3-D convolutions, as in R3D."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = torch.nn.Conv3d(3, width, (3, 7, 7), (1, 2, 2), (1, 3, 3))
        wide = [width, 2 * width, 4 * width]
        self.down = torch.nn.ModuleList(torch.nn.Conv3d(w // 2, w, 3, 2, 1) for w in wide[1:])
        self.same = torch.nn.ModuleList(torch.nn.Conv3d(w, w, 3, 1, 1) for w in wide)
        self.head = torch.nn.Linear(wide[-1], 400)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores of a clip `(N, 3, frames, height, width)`."""
        x = torch.relu(self.stem(x))
        x = torch.relu(x + self.same[0](x))
        for down, same in zip(self.down, list(self.same)[1:], strict=True):
            x = torch.relu(down(x))
            x = torch.relu(x + same(x))
        scores: torch.Tensor = self.head(x.mean((2, 3, 4)))
        return scores


class Segmentation(torch.nn.Module):
    """An encoder, dilated convolutions beside each other, and transposed ones back to the image's size."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, width, 3, 2, 1)
        self.second = torch.nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.third = torch.nn.Conv2d(2 * width, 4 * width, 3, 2, 1)
        self.dilated = torch.nn.ModuleList(
            torch.nn.Conv2d(4 * width, 2 * width, 3, 1, rate, rate) for rate in (2, 4, 8)
        )
        self.merged = torch.nn.Conv2d(6 * width, 4 * width, 1)
        self.up = torch.nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.top = torch.nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.classes = torch.nn.Conv2d(width, 21, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores of each pixel."""
        first = torch.relu(self.first(x))
        second = torch.relu(self.second(first))
        third = torch.relu(self.third(second))
        third = torch.relu(self.merged(torch.cat([torch.relu(d(third)) for d in self.dilated], 1)))
        second = torch.relu(self.up(third)) + second
        scores: torch.Tensor = self.classes(torch.relu(self.top(second)) + first)
        return scores


class DecoderLayer(torch.nn.Module):
    """A layer as in Llama: root mean squares, gated products, and fewer heads for keys than for queries."""

    def __init__(self, width: int, heads: int, key_heads: int, inner: int) -> None:
        super().__init__()
        self.heads, self.key_heads, self.each = heads, key_heads, width // heads
        self.query = torch.nn.Linear(width, width, bias=False)
        self.key = torch.nn.Linear(width, key_heads * self.each, bias=False)
        self.value = torch.nn.Linear(width, key_heads * self.each, bias=False)
        self.out = torch.nn.Linear(width, width, bias=False)
        self.gate = torch.nn.Linear(width, inner, bias=False)
        self.up = torch.nn.Linear(width, inner, bias=False)
        self.down = torch.nn.Linear(inner, width, bias=False)
        self.scales = torch.nn.ParameterList(torch.nn.Parameter(torch.rand(width) + 0.5) for _ in range(2))

    def _normed(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The next layer's input `(N, tokens, width)`."""
        n, tokens, width = x.shape
        normed = self._normed(x, self.scales[0])
        query = self.query(normed).reshape(n, tokens, self.heads, self.each).transpose(1, 2)
        key, value = (
            layer(normed)
            .reshape(n, tokens, self.key_heads, self.each)
            .transpose(1, 2)
            .repeat_interleave(self.heads // self.key_heads, 1)
            for layer in (self.key, self.value)
        )
        weights = torch.softmax(query @ key.transpose(-1, -2) * self.each**-0.5, -1)
        x = x + self.out((weights @ value).transpose(1, 2).reshape(n, tokens, width))
        normed = self._normed(x, self.scales[1])
        gated = self.gate(normed)
        next_layer: torch.Tensor = x + self.down(gated * torch.sigmoid(gated) * self.up(normed))
        return next_layer


def _image(kind: str, pixels: int, batch: int = 1, **settings: Any) -> Network:
    return Network(kind, image(kind, **settings), (batch, 3, pixels, pixels))


def _t5(width: int, heads: int, tokens: int, **more: Any) -> Network:
    settings = {"d_model": width, "num_heads": heads, "d_kv": width // heads, "d_ff": 4 * width, **more}

    def make() -> torch.nn.Module:
        import transformers

        config = transformers.T5Config(num_layers=1, vocab_size=2000, use_cache=False, **settings)
        return FirstOutput(transformers.T5EncoderModel(config), "input_ids", masked=True)

    return Network(f"T5, {width} wide", make, (1, tokens), 2000)


NETWORKS: dict[str, Network] = {
    "convnext-192": _image("ConvNext", 192, depths=[1, 1, 1, 1]),
    "convnext-160-b2": _image("ConvNext", 160, 2, depths=[1, 1, 1, 1], hidden_sizes=[64, 128, 320, 640]),
    "efficientnet-192": _image(
        "EfficientNet", 192, width_coefficient=1.0, depth_coefficient=0.5, image_size=192, hidden_dim=1280
    ),
    "regnet-192": _image(
        "RegNet", 192, depths=[1, 1, 1, 1], hidden_sizes=[64, 128, 320, 768], groups_width=32
    ),
    "segformer-160": _image("Segformer", 160, depths=[1, 1, 1, 1], **_EAGER),
    "t5-512x96": _t5(512, 8, 96),
    "t5-768x48-gated": _t5(768, 12, 48, feed_forward_proj="gated-gelu"),
    "gpt2-640x112": Network(
        "GPT-2", text("GPT2", n_embd=640, n_head=10, n_layer=1, vocab_size=2000), (1, 112), 2000
    ),
    "decoder-896x72": Network("decoder", lambda: DecoderLayer(896, 14, 2, 2432), (1, 72, 896)),
    "video-96": Network("video", lambda: Video(32), (1, 3, 8, 96, 96)),
    "segmentation-192": Network("segmentation", lambda: Segmentation(32), (1, 3, 192, 192)),
}
"""By the name of the file."""


if __name__ == "__main__":
    write_missing(NETWORKS, "Write the networks that judge models.")
