"""Made-up measured programs: small datasets on disk, and a rule of what is fast that a model can learn."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.config import ModelConfig, describe
from tlp_tvm.model.platform import Platform
from tlp_tvm.model.tlp import TLP, TLPSettings

torch.set_num_threads(1)  # more only wait for each other in networks this small

LAYOUT = FeatureLayout.preset("ansor").with_shape(length=8)
TARGETS = {"alpha": "llvm -keys=cpu -mcpu=core-avx2 -num-cores=1", "beta": "llvm -keys=cpu -mcpu=nehalem"}
TILES = (1, 2, 4, 8, 16, 32)
BEST_TILE = {"alpha": 8, "beta": 2}
"""The innermost tile that is fastest on each platform, for every task."""


def workload(task: int) -> str:
    return f'["made-up-{task}", [{64 * (task + 1)}]]'


def line(platform: str, task: int, steps: list[Any], costs: list[float], error_no: int = 0) -> str:
    """A measure record."""
    entry = [workload(task), TARGETS[platform], [2, 64, 64, 0, 0, 0, 0, 0], "", 1, []]
    return json.dumps({"i": [entry, [[], steps]], "r": [costs, error_no, 0.5, 1700000000], "v": "v0.6"})


def program(rng: random.Random, tile: int, outer: int) -> list[Any]:
    """Steps with two splits, of which only the second's tile matters."""
    steps: list[Any] = [["SP", 2, 0, 512, [outer, 2], 1], ["SP", 2, 3, 256, [tile], 1], ["AN", 2, 5, 2]]
    return steps + [["CI", rng.randrange(4)]] * rng.randrange(3)


def latency(platform: str, task: int, tile: int) -> float:
    return 1e-4 * (task + 1) * (1.0 + abs(np.log2(tile / BEST_TILE[platform])))


def table_entry(task: int, split: str = "train", network: str = "net", weight: int = 1) -> dict[str, Any]:
    return {"workload_key": workload(task), "network": network, "weight": weight, "split": split}


def write_packed(file: Path, text: str) -> None:
    """gzip without the time of writing in its head, so that the same text gives the same bytes and digest."""
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def write_dataset(
    folder: Path,
    splits: Sequence[str] = ("train",) * 4 + ("test",) * 2,
    platforms: Sequence[str] = ("alpha", "beta"),
) -> Path:
    """A dataset folder with one task an entry of `splits`; all programs on all platforms."""
    folder.mkdir(parents=True, exist_ok=True)
    for task, split in enumerate(splits):
        rng = random.Random(task)
        programs = [
            (tile, program(rng, tile, outer))
            for tile in TILES
            for outer in rng.sample((1, 2, 4, 8, 16, 64), 3)
        ]
        rng.shuffle(programs)
        for platform in platforms:
            place = folder / platform / split
            place.mkdir(parents=True, exist_ok=True)
            lines = [line(platform, task, steps, [latency(platform, task, tile)]) for tile, steps in programs]
            write_packed(place / f"task{task}.json.gz", "\n".join(lines) + "\n")
    entries = [table_entry(task, split, f"{split}-net", task + 1) for task, split in enumerate(splits)]
    (folder / "tasks.json").write_text(json.dumps(entries))
    return folder


def tiny_settings(layout: FeatureLayout = LAYOUT, heads: int = 2, **options: Any) -> TLPSettings:
    return TLPSettings.of_layout(layout, heads, **{"hidden": 16, "attention_heads": 4, **options})


def tiny_config(layout: FeatureLayout = LAYOUT, **options: Any) -> tuple[ModelConfig, TLP]:
    """A model with random weights and its description."""
    settings = tiny_settings(layout, **options)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = TLP(settings).eval()
    platforms = [Platform(name, target) for name, target in list(TARGETS.items())[: settings.heads]]
    described = describe(
        layout, settings, platforms, data={"digest": "0" * 64}, training={"epochs": 1}, seed=3, metrics={}
    )
    return described, network


def random_embeddings(layout: FeatureLayout = LAYOUT, count: int = 20, seed: int = 0) -> Any:
    """Embeddings of programs of every length from 0 on, (count, L, E) float32."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, layout.length, layout.width), np.float32)
    kinds = rng.integers(len(layout.kinds), size=x.shape[:2])
    x[:, :, : len(layout.kinds)] = np.eye(len(layout.kinds), dtype=np.float32)[kinds]
    lengths = np.arange(count) % (layout.length + 1)
    return x * (np.arange(layout.length) < lengths[:, None])[:, :, None]
