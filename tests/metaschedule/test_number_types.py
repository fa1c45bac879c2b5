"""Networks of narrow numbers: what TVM computes of them, and what a shipped model says of their tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from collected import QUICK
from compiled_graphs import TORCHS_OWN, compiled, empty_cache  # noqa: F401
from tlp_tvm.errors import TuningError
from tlp_tvm.metaschedule import backend_counts
from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.loading.targets import target_of
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import relax_of
from tlp_tvm.metaschedule.torch_compile.running import RunGraph
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_settings import TuneResult, TuneSettings

pytestmark = pytest.mark.filterwarnings(TORCHS_OWN)

ROUNDED = {torch.bfloat16: 2**-6, torch.float16: 2**-9, torch.float64: 1e-6}
"""Type of numbers -> by what outputs may differ, relative to the largest: a few roundings."""


class Products(torch.nn.Module):
    """Every product that a repair rounds: with and without a bias, in batches, of images."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.line = torch.nn.Conv2d(2, 4, 3), torch.nn.Conv1d(4, 4, 3, bias=False)
        self.wide, self.bare = torch.nn.Linear(8, 8), torch.nn.Linear(8, 6, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(2, 2, 4, 12) -> (2, 4, 6)."""
        x = self.line(torch.relu(self.image(x)).flatten(2)[..., :10])
        x = torch.matmul(self.wide(x), torch.bmm(x.transpose(1, 2), x))
        return self.bare(torch.baddbmm(x, x[:, :, :4], x))


class Bytes(torch.nn.Module):
    """A product of 8-bit integers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (40, 24), dtype=torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(32, 40) int8 -> (32, 24) int32."""
        return torch._int_mm(x, self.weight)


def tuned(network: torch.nn.Module, x: torch.Tensor, folder: Path, **changes: Any) -> TuneResult:
    """A tuning of a few programs by TVM's own model."""
    torch.export.save(torch.export.export(network, (x,)), folder / "network.pt2")
    how: dict[str, Any] = {
        "model": "xgb",
        "framework": "metaschedule",
        "measure": QUICK,
        "turns": 1,
        **changes,
    }
    settings = TuneSettings(str(folder / "network.pt2"), folder / "run", trials=8, **how)
    return tune_network(settings, TuneObserver())


@torch.inference_mode()
@pytest.mark.parametrize("numbers", list(ROUNDED))
def test_products_of_other_numbers_are_rounded_as_torch_rounds_them(numbers: torch.dtype) -> None:
    torch.manual_seed(0)
    network, x = Products().eval().to(numbers), torch.randn(2, 2, 4, 12).to(numbers)
    expected = network(x)

    program = torch.export.export(network, (x,))
    built = end_to_end.compiled(prepared(*relax_of(program)), {}, target_of(""))
    found = RunGraph(built, [0], [None])(x)[0]

    assert found.dtype == numbers
    assert float((found - expected).abs().max() / expected.abs().max()) < ROUNDED[numbers]


@torch.inference_mode()
def test_a_shipped_model_refuses_bfloat16_by_name_and_measured_programs_run(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network, x = torch.nn.Linear(24, 16).eval().to(torch.bfloat16), torch.randn(8, 24).to(torch.bfloat16)
    expected = network(x)

    with pytest.warns(
        RuntimeWarning, match=r"learned from, found .*matmul.* of bfloat16; tune the network by"
    ):
        assert torch.equal(compiled(network)(x), expected)
    with pytest.raises(TuningError, match=r"model x86-metaschedule: expected tasks of float32, which it has"):
        tuned(network, x, tmp_path, model="x86-metaschedule")
    tuned(network, x, tmp_path)

    torch.compiler.reset()
    found = compiled(network, database=str(tmp_path / "run"))(x)
    assert backend_counts().compiled == 1
    torch.testing.assert_close(found, expected)


@torch.inference_mode()
def test_a_product_of_bytes_is_exact(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network, x = Bytes().eval(), torch.randint(-128, 128, (32, 40), dtype=torch.int8)

    with pytest.warns(RuntimeWarning, match=r"learned from, found matmul of int8; tune the network by"):
        assert torch.equal(compiled(network)(x), network(x))
    tuned(network, x, tmp_path)

    torch.compiler.reset()
    assert torch.equal(compiled(network, database=str(tmp_path / "run"))(x), network(x))
    assert backend_counts().compiled == 1


@torch.inference_mode()
def test_bytes_that_become_floating_point_are_no_narrow_task() -> None:
    torch.manual_seed(0)
    linear = torch.nn.Linear(12, 5).eval()

    def seen(image: torch.Tensor) -> torch.Tensor:
        return linear(image.to(torch.float32) / 255)

    image = torch.randint(0, 256, (7, 12), dtype=torch.uint8)
    torch.testing.assert_close(compiled(seen)(image), seen(image))
    assert backend_counts().compiled == 1
