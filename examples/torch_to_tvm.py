"""A PyTorch module, tuned by TLP on today's TVM and run: torch.export -> Relax -> MetaSchedule -> a library.

    python examples/torch_to_tvm.py [MODEL [TRIALS [OUT]]]

MODEL is a TLP model of the layout "metaschedule" (`tlp-tvm collect --framework metaschedule`, then `tlp-tvm
train`), or "random" or "xgb" for TVM's own. Needs the extra `metaschedule`.
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
    """Tune, and return the largest difference between what PyTorch and the tuned library compute."""
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
