"""Tiny networks, some of them exported as files by torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

SHAPE = (1, 3, 8, 8)


class ConvNet(torch.nn.Module):
    """Two convolutions with a batch norm, a pool and a dense layer: some milliseconds to tune."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.second = torch.nn.Conv2d(8, 4, 1)
        self.dense = torch.nn.Linear(64, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = torch.max_pool2d(torch.relu(self.norm(self.first(image))), 2)
        return torch.softmax(self.dense(torch.flatten(torch.relu(self.second(x)), 1)), -1)


class Reader(torch.nn.Module):
    """Ids that are looked up in two tables, and a mask that becomes numbers; two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.stems = torch.nn.Embedding(50, 8), torch.nn.Embedding(90, 8)
        self.dense = torch.nn.Linear(8, 8)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.dense(self.words(ids) + self.stems(ids)) * mask.unsqueeze(-1).to(torch.float32)
        return found, torch.softmax(found.sum(1), -1)


class Called(torch.nn.Module):
    """Functions of an input."""

    def __init__(self, functions: Sequence[Callable[[torch.Tensor], Any]]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, x: torch.Tensor) -> tuple[Any, ...]:
        """Whatever they give."""
        return tuple(function(x) for function in self.functions)


def export_reader(path: Path) -> Path:
    """ONNX or TorchScript by the end of the name."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Reader().eval()
    ids = torch.zeros((1, 40), dtype=torch.int64)
    inputs = (ids, torch.ones_like(ids))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path.suffix == ".onnx":
            torch.onnx.export(network, inputs, path, input_names=["ids", "mask"], dynamo=False)
        else:
            torch.jit.trace(network, inputs).save(path)
    return path


def conv_net() -> ConvNet:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ConvNet().eval()


def dense_net() -> torch.nn.Module:
    """Of two tasks, for what takes the same time a task."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10), torch.nn.Softmax(1)).eval()


def image() -> Any:
    return np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32)


def export_onnx(path: Path, open_batch: bool = False) -> Path:
    axes = {"dynamic_axes": {"image": {0: "n"}}} if open_batch else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that needs no further package is called deprecated
        torch.onnx.export(
            conv_net(), (torch.zeros(SHAPE),), path, input_names=["image"], dynamo=False, **axes
        )
    return path


def export_traced(path: Path, with_shapes: bool = True, network: torch.nn.Module | None = None) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated
        torch.jit.trace(network or conv_net(), torch.zeros(SHAPE), _store_inputs=with_shapes).save(path)
    return path


def export_scripted(path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(conv_net()).save(path)
    return path
