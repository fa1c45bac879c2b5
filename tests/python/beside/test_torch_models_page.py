"""The table of models that `torch.compile(backend="tlp_tvm")` runs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from places import benchmark


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("torch_models_page", monkeypatch)


def tried(first: float, **latencies: float) -> dict[str, Any]:
    common = {"difference": 2e-6, "compiled": 1, "kept": 0, "eager": {"draws random numbers": 2}}
    return {"first_s": first, "latencies": latencies, **common}


def test_a_row_a_model_and_the_geometric_means(page: ModuleType) -> None:
    known = {
        "bert": {
            "new": tried(20.0, eager=0.004, inductor=0.003, onnxruntime=0.001, tlp_tvm=0.002),
            "again": tried(1.5),
        },
        "vit": {"new": tried(30.0, eager=0.001, tlp_tvm=0.002), "again": tried(2.0)},
        "opt": {"new": {"error": "RuntimeError: no such operator"}, "again": {"error": "the same"}},
    }
    lines = page.lines_of(known)
    assert lines[2] == "| bert | 20.0 | 1.5 | 2e-06 | 4 | 3 | 1 | 2 | 2.00x | 1.50x | 0.50x | 1 | 2 | TVM |"
    assert lines[3] == "| vit | 30.0 | 2.0 | 2e-06 | 1 | - | - | 2 | 0.50x | - | - | 1 | 2 | PyTorch |"
    assert lines[4].startswith("| opt | RuntimeError: no such operator |")
    assert lines[5] == "| geometric mean | | | | | | | | 1.00x | 1.50x | 0.50x | | | |"
    assert lines[6] == "| median | | | | | | | | 1.25x | 1.50x | 0.50x | | | |"
    assert lines[7] == "| geometric mean, as it runs | | | | | | | | 1.41x | 1.50x | 0.50x | | | |"
    assert lines[8] == "| median, as it runs | | | | | | | | 1.50x | 1.50x | 0.50x | | | |"
    assert {line.count("|") for line in lines} == {len(page.HEADS) + 1}
