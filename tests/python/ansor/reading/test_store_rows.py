"""Tasks of recorded programs, looked for in networks."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tlp_tvm.ansor.graph.pipeline import AS_BEFORE
from tlp_tvm.ansor.loading.targets import target_of
from tlp_tvm.ansor.networks.network_files import read_by_tvm
from tlp_tvm.ansor.networks.planning import plan_tasks
from tlp_tvm.ansor.reading.store_rows import rebuilt_tasks

TARGET = "llvm -mcpu=core-avx2"


def test_networks_and_targets_that_are_not_known_give_no_task() -> None:
    tasks: dict[str, dict[str, int]] = {'["k", [4, 4]]': {"somebodys_net": 1}, "[]": {}}
    assert list(rebuilt_tasks(tasks, [TARGET, "abacus"], lambda words: None)) == []


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_tasks_of_a_file_are_found_as_they_were_split_off_before(tmp_path: Path) -> None:
    file = str(tmp_path / "own.pt")
    network = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.SiLU())
    torch.jit.trace(network, torch.zeros(8, 32)).save(file)  # type: ignore[no-untyped-call]
    target = target_of(TARGET, here=False)
    without_tanh = next(left_out for left_out in AS_BEFORE if "tanh for sigmoids" in left_out)
    keys = [
        {each.workload_key for each in plan_tasks([file], target, lambda _: None, leave_out=left_out)}
        for left_out in ((), without_tanh)
    ]
    assert keys[0] != keys[1]
    wanted = {key: {file: 1} for key in keys[0] | keys[1]}
    found = list(rebuilt_tasks(wanted, [TARGET], lambda words: None))
    assert {str(task.workload_key) for task in found} == keys[0] | keys[1]


class Attention(torch.nn.Module):
    """T5's, whose scale TVM's importer does not read."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=1.0)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_tasks_are_found_of_what_tvms_importer_took_for_another(tmp_path: Path) -> None:
    file = str(tmp_path / "own.pt")
    torch.jit.trace(Attention(), torch.zeros(1, 2, 16, 8)).save(file)  # type: ignore[no-untyped-call]
    target = target_of(TARGET, here=False)
    right = {each.workload_key for each in plan_tasks([file], target, lambda _: None)}
    with read_by_tvm():
        wrong = {each.workload_key for each in plan_tasks([file], target, lambda _: None)}
    assert right != wrong

    found = rebuilt_tasks({key: {file: 1} for key in right | wrong}, [TARGET], lambda words: None)

    assert {str(task.workload_key) for task in found} == right | wrong


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_tasks_of_a_file_are_those_that_a_collection_has(tmp_path: Path) -> None:
    file = str(tmp_path / "own.pt")
    torch.jit.trace(torch.nn.Linear(32, 16), torch.zeros(8, 32)).save(file)  # type: ignore[no-untyped-call]
    planned = plan_tasks([file], target_of(TARGET, here=False), lambda words: None)
    keys = [each.workload_key for each in planned]
    assert keys

    found = list(rebuilt_tasks({key: {file: 1} for key in keys}, [TARGET], lambda words: None))

    assert [str(task.workload_key) for task in found] == keys
    assert list(rebuilt_tasks({key: {"own": 1} for key in keys}, [TARGET], lambda words: None)) == []
