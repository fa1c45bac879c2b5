"""A compiled graph that is slower than PyTorch's own does not run."""

from __future__ import annotations

import re
import threading
import warnings
from typing import Any

import pytest
import torch

from compiled_graphs import TORCHS_OWN, compiled, empty_cache, network  # noqa: F401
from tlp_tvm.metaschedule import backend_counts
from tlp_tvm.metaschedule.torch_compile import backend
from tlp_tvm.metaschedule.torch_compile.backend_options import BackendOptions
from tlp_tvm.metaschedule.torch_compile.beside_eager import TURNS, in_turns
from tlp_tvm.metaschedule.torch_compile.running import RunGraph
from tlp_tvm.tuning.network.same_outputs import difference

pytestmark = pytest.mark.filterwarnings(TORCHS_OWN)


def took(monkeypatch: pytest.MonkeyPatch, ours: float, theirs: float) -> list[int]:
    """Have every graph take so long; runs of ours are noted afterwards."""
    runs: list[int] = []
    call = RunGraph.__call__

    def noted(graph: RunGraph, *given: Any) -> Any:
        runs.append(len(given))
        return call(graph, *given)

    def known(ours_once: Any, theirs_once: Any) -> tuple[float, float]:
        for one, other in zip(ours_once(), theirs_once(), strict=True):
            torch.testing.assert_close(one, other)
        runs.clear()
        return ours, theirs

    monkeypatch.setattr(RunGraph, "__call__", noted)
    monkeypatch.setattr(backend, "in_turns", known)
    return runs


@torch.inference_mode()
def test_a_slower_graph_is_left_to_pytorch_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, x = took(monkeypatch, 2e-3, 1e-3), torch.randn(2, 3, 12, 12)
    module = network()
    fast = compiled(module, never_slower=True)
    with pytest.warns(RuntimeWarning, match='it is faster there; the option "minutes" tunes it'):
        torch.testing.assert_close(fast(x), module(x))
    torch.testing.assert_close(fast(x), module(x))
    assert (backend_counts().compiled, backend_counts().slower) == (1, 1)
    assert not runs


@torch.inference_mode()
def test_a_graph_that_is_as_fast_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, x = took(monkeypatch, 1.04e-3, 1e-3), torch.randn(2, 3, 12, 12)
    module = network()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        torch.testing.assert_close(compiled(module, never_slower=True)(x), module(x))
    assert backend_counts().slower == 0
    assert runs == [1]


@torch.inference_mode()
def test_nothing_is_timed_if_not_asked_for_and_the_same_library_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs, x, module = took(monkeypatch, 2e-3, 1e-3), torch.randn(2, 3, 12, 12), network()
    compiled(module)(x)
    assert runs == [1, 1], "one to see that it gives what PyTorch gives"
    torch.compiler.reset()
    with pytest.warns(RuntimeWarning, match="it is faster there"):
        compiled(module, never_slower=True)(x)
    assert (backend_counts().kept, backend_counts().slower) == (1, 1)


@torch.inference_mode()
def test_a_library_that_fails_as_it_runs_leaves_the_graph_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("TVM says: no")

    monkeypatch.setattr(RunGraph, "__call__", fails)
    module, x = network(), torch.randn(2, 3, 12, 12)
    with pytest.warns(RuntimeWarning, match="TVM says: no"):
        torch.testing.assert_close(compiled(module, never_slower=True)(x), module(x))
    assert backend_counts().compiled == 0


@torch.inference_mode()
def test_a_library_that_gives_something_else_leaves_the_graph_to_pytorch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = RunGraph.__call__
    monkeypatch.setattr(RunGraph, "__call__", lambda *given: [each * 1.01 for each in call(*given)])
    module, x = network(), torch.randn(2, 3, 12, 12)
    with pytest.warns(
        RuntimeWarning, match=r"expected the outputs that it has there, found a difference of 1"
    ):
        torch.testing.assert_close(compiled(module)(x), module(x))
    assert backend_counts().compiled == 0
    assert sum(backend_counts().eager.values()) == 1


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        ([1.0, 2.0], [1.0, 2.0], ""),
        ([1.0, 2.001], [1.0, 2.0], ""),
        ([1.0, 2.01], [1.0, 2.0], "a difference of 5.0e-03 of the largest value"),
        ([NAN, -INF, 1.0], [NAN, -INF, 1.0], ""),
        ([NAN, 1.0], [1.0, 1.0], "a difference of nan of the largest value"),
        ([1.0, 1.0], [INF, 1.0], "a difference of inf of the largest value"),
        ([1e-9], [0.0], ""),
        ([0] * 99 + [1], [0] * 100, ""),
        ([0, 1], [0, 0], "50% of its whole numbers others"),
        ([1], [1.0], r"torch.int64 \(1,\) in the place of torch.float32 \(1,\)"),
        ([1.0], [1.0, 1.0], r"torch.float32 \(1,\) in the place of torch.float32 \(2,\)"),
    ],
)
def test_what_differs_is_told(ours: list[float], theirs: list[float], found: str) -> None:
    told = difference([torch.tensor(ours)], [torch.tensor(theirs)])
    assert re.fullmatch(found, told), told


def test_narrow_numbers_are_rounded_and_outputs_counted() -> None:
    one = torch.tensor([1.0, 0.01], dtype=torch.bfloat16)
    assert not difference([one * 1.02], [one])
    assert difference([one * 1.2], [one])
    assert difference([one], [one, one]) == "1 outputs of 2"


@torch.inference_mode()
@pytest.mark.parametrize(
    "curve", [torch.nn.SELU(), torch.nn.CELU(0.7), torch.nn.ELU(0.5), torch.nn.ELU()], ids=str
)
def test_exponential_units_have_all_of_their_factors(curve: torch.nn.Module) -> None:
    torch.manual_seed(0)
    module, x = torch.nn.Sequential(torch.nn.Linear(6, 8), curve), torch.randn(3, 6) * 3
    torch.testing.assert_close(compiled(module)(x), module(x))
    assert (backend_counts().compiled, sum(backend_counts().eager.values())) == (1, 0)


def test_both_run_in_turns_and_the_slower_one_takes_longer() -> None:
    order: list[str] = []
    waiting = threading.Event()

    def slow() -> None:
        order.append("slow")
        waiting.wait(0.05)

    ours, theirs = in_turns(slow, lambda: order.append("fast"))
    assert ours > theirs
    turns = [name for name, before in zip(order, [None, *order], strict=False) if name != before]
    assert turns == ["slow", "fast"] * (TURNS + 1)


def test_it_is_the_default() -> None:
    assert BackendOptions().never_slower
