"""A tuned network in the folder of its file."""

from __future__ import annotations

from pathlib import Path

from scorers import LinearScorer
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_settings import TuneSettings

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


def tuned(network: Path) -> tuple[Path, Path]:
    """A network's file, and the folder of its tuning, without measuring."""
    out = network.with_suffix("")
    tune_network(TuneSettings(str(network), out, LinearScorer(), TARGET, trials=0, population=16, turns=1))
    return network, out
