"""Tune a PyTorch module with MetaSchedule and run it: torch.export -> Relax -> search -> a library.

    python examples/torch_to_tvm.py [MODEL [TRIALS [OUT]]]

MODEL is a TLP model for MetaSchedule, such as "x86-metaschedule", or TVM's own "random" or "xgb". Needs the
extra `metaschedule`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

import tlp_tvm
from tlp_tvm.metaschedule import load_tuned


class Network(torch.nn.Module):
    """Any module that `torch.export` takes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 128), torch.nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, 64) -> (N, 10)."""
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


def main(model: str = "random", trials: int = 32, out: Path = Path("runs/torch_to_tvm")) -> float:
    """Tune; return the largest difference between the outputs of PyTorch and of the tuned library."""
    network, x = Network().eval(), torch.randn(16, 64)
    out.mkdir(parents=True, exist_ok=True)
    torch.export.save(torch.export.export(network, (x,)), out / "network.pt2")

    result = tlp_tvm.tune(
        out / "network.pt2", out / "run", trials=trials, framework="metaschedule", model=model
    )
    ended = result.end_to_end
    sys.stdout.write(
        f"{ended.untuned_latency * 1e6:.0f} us untuned, {ended.tuned_latency * 1e6:.0f} us tuned\n"
    )

    (computed,) = load_tuned(out / "run")(x=x.numpy())
    return float(np.abs(computed - network(x).detach().numpy()).max())


if __name__ == "__main__":
    given = sys.argv[1:]
    difference = main(*given[:1], *map(int, given[1:2]), *map(Path, given[2:3]))
    sys.stdout.write(f"largest difference {difference:.1g}\n")
