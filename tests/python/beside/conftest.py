"""A tuned network in each kind of file."""

from __future__ import annotations

from pathlib import Path

import pytest

from exported import export_onnx, export_traced
from scorers import LinearScorer
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_settings import TuneSettings

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


def tuned(network: Path) -> tuple[Path, Path]:
    """A network's file, and the folder of its tuning, without measuring."""
    out = network.with_suffix("")
    tune_network(TuneSettings(str(network), out, LinearScorer(), TARGET, trials=0, population=16, turns=1))
    return network, out


@pytest.fixture(scope="session")
def tuned_onnx(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tuned(export_onnx(tmp_path_factory.mktemp("onnx") / "net.onnx"))


@pytest.fixture(scope="session")
def tuned_torchscript(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tuned(export_traced(tmp_path_factory.mktemp("torchscript") / "net.pt"))
