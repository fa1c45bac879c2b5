"""A tuned network in each kind of file."""

from __future__ import annotations

from pathlib import Path

import pytest

from beside_tunings import tuned
from exported import export_onnx, export_traced


@pytest.fixture(scope="session")
def tuned_onnx(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tuned(export_onnx(tmp_path_factory.mktemp("onnx") / "net.onnx"))


@pytest.fixture(scope="session")
def tuned_torchscript(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tuned(export_traced(tmp_path_factory.mktemp("torchscript") / "net.pt"))
