"""Graphs of torch for the tests of the backend, and a cache that each test finds empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tlp_tvm.metaschedule import backend_counts

TORCHS_OWN = "ignore:.isinstance.treespec, LeafSpec:FutureWarning"  # torch warns of itself


class Network(torch.nn.Module):
    """A convolution, a linear layer, and a result that is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, 3, H, W) -> (N, 5)."""
        return torch.softmax(self.second(torch.relu(self.first(x)).mean((2, 3))), -1)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    torch.compiler.reset()
    counts = backend_counts()
    counts.compiled = counts.kept = counts.slower = 0
    counts.eager.clear()
    yield
    torch.compiler.reset()


def compiled(function: Any, **options: Any) -> Any:
    """A function whose graphs TVM runs, however much faster PyTorch is; these are small."""
    return torch.compile(function, backend="tlp_tvm", options={"never_slower": False, **options})


def network() -> Network:
    torch.manual_seed(0)
    return Network().eval()
