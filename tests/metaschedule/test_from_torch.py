"""Operators that TVM's importer of exported programs lacks, or gets wrong, compute what torch computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from exported import Called
from tlp_tvm.errors import NetworkError
from tlp_tvm.metaschedule.from_torch.meanings import put_meanings
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.builtin import network_from, relax_of
from tlp_tvm.tuning.network.same_outputs import difference

pytestmark = pytest.mark.filterwarnings(
    "ignore:.isinstance.treespec, LeafSpec:FutureWarning"
)  # torch warns of itself


def in_bags(x: torch.Tensor) -> torch.Tensor:
    words = (x[0, 0] * 9).abs().to(torch.int64).clamp(max=19)
    return functional.embedding_bag(words, TABLE, mode="max")


TABLE = torch.linspace(-1, 1, 120).reshape(20, 6)
GRID = torch.linspace(-1.1, 1.1, 24).reshape(1, 3, 4, 2)
FUNCTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "adaptive_max_pool2d": lambda x: functional.adaptive_max_pool2d(x, (3, 4)),
    "amax": lambda x: x.amax((2, 3)),
    "amin": lambda x: x.amin(0),
    "any": lambda x: (x > 9).any(),
    "avg_pool2d with a divisor": lambda x: functional.avg_pool2d(x, 3, 2, 1, divisor_override=5),
    "bags": in_bags,
    "bilinear": lambda x: functional.bilinear(x[0], x[0, ..., :3], torch.ones(5, 9, 3)),
    "cat with nothing": lambda x: torch.cat([torch.empty(0), x], 1),
    "cdist": lambda x: torch.cdist(x[0], x[0] + 1),
    "clamp of whole numbers": lambda x: (x * 9).to(torch.int64).clamp(min=3),
    "count_nonzero": lambda x: torch.count_nonzero(x > 0, dim=1),
    "equal truths": lambda x: ((x > 0) == 0) & ((x > 1) != (x < 1)),
    "erfc": torch.erfc,
    "exp2": torch.exp2,
    "grid_sample": lambda x: functional.grid_sample(x, GRID, align_corners=False),
    "group_norm without weights": lambda x: functional.group_norm(x, 2),
    "heaviside": lambda x: torch.heaviside(x, torch.tensor(0.5)),
    "im2col": lambda x: functional.unfold(x, 3, padding=1),
    "index with gaps": lambda x: x[:, :, torch.tensor([[0], [3]]), torch.tensor([2, 5, 6])],
    "linear interpolation": lambda x: functional.interpolate(x[0], scale_factor=2.0, mode="linear"),
    "logaddexp": lambda x: torch.logaddexp(x, x * 2),
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "min along an axis": lambda x: x.min(1)[1],
    "nearest of another size": lambda x: functional.interpolate(x, size=(10, 5)),
    "prod": lambda x: x.prod(1),
    "rrelu": lambda x: functional.rrelu(x, training=False),
    "smoothed": lambda x: functional.interpolate(x, size=(3, 4), mode="bilinear", antialias=True),
    "var_mean": lambda x: sum(torch.var_mean(x, 1)),
    "windows of an axis": lambda x: x.unfold(3, 4, 2),
}


def test_operators_are_what_they_are_in_torch() -> None:
    torch.manual_seed(0)
    network, x = Called(list(FUNCTIONS.values())).eval(), torch.randn(1, 4, 7, 9)

    found = by_tvm(network, x)

    with torch.no_grad():
        expected = network(x)
    for name, ours, theirs in zip(FUNCTIONS, found, expected, strict=True):
        assert difference([ours], [theirs]) == "", name


@pytest.mark.parametrize("name", ["avg_pool2d with a divisor", "grid_sample", "nearest of another size"])
def test_this_tvm_still_misreads(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Fails with a TVM that reads it: then its line can go."""
    monkeypatch.setattr("tlp_tvm.metaschedule.from_torch.meanings.put_meanings", lambda program: None)
    torch.manual_seed(0)
    network, x = Called([FUNCTIONS[name]]).eval(), torch.randn(1, 4, 7, 9)

    with torch.no_grad():
        assert difference(by_tvm(network, x), network(x))


class Plain(torch.nn.Module):
    """Nothing that TVM misreads, though operators that it misreads with other arguments."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(1, 4, 7, 9) -> (1, 2, 14, 18)."""
        x = functional.avg_pool2d(torch.clamp(x, max=1.0), 3, 1, 1)[:, torch.tensor([0, 2])]
        return functional.interpolate(x, scale_factor=2.0)


def test_what_is_read_right_stays() -> None:
    program = torch.export.export(Plain(), (torch.randn(1, 4, 7, 9),))
    before = [node.target for node in program.graph.nodes]

    put_meanings(program)

    assert [node.target for node in program.graph.nodes] == before


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: x.cummax(1)[0], "Unsupported function types .*cummax"),
        (
            lambda x: functional.interpolate(x, (3, 4), mode="bilinear", antialias=True, align_corners=True),
            "an antialiased interpolation with aligned corners",
        ),
    ],
)
def test_what_no_one_imports_is_refused_by_name(
    tmp_path: Path, function: Callable[[torch.Tensor], Any], found: str
) -> None:
    file = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(Called([function]), (torch.randn(1, 4, 7, 9),)), file)

    message = re.escape(f"{file}: expected a network of operators that TVM can import, found: ")
    with pytest.raises(NetworkError, match=f"{message}{found}.*; export it without these$"):
        network_from(str(file))


def by_tvm(network: torch.nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """What a network gives where TVM compiles it untuned."""
    tvm = load_tvm()
    from tvm import relax

    with torch.no_grad():
        module, parameters = relax_of(torch.export.export(network, (x,)))
    library = tvm.compile(relax.transform.LegalizeOps()(module), target="llvm")
    machine = relax.VirtualMachine(library, tvm.cpu())
    outputs = machine["main"](tvm.runtime.tensor(x.numpy()), *parameters.values())
    return [torch.from_numpy(each.numpy()) for each in outputs]
