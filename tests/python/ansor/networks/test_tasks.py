"""Tasks of networks and of single operators, CUDA ones on any machine."""

from __future__ import annotations

import pytest

from tlp_tvm.ansor.networks.builtin import load_network
from tlp_tvm.ansor.networks.tasks import NVIDIA_GPU, OPERATORS, extract_tasks, operator_tasks

CUDA = "cuda -arch=sm_70"


@pytest.mark.parametrize("target", ["llvm -mcpu=core-avx2 -num-cores=2", CUDA])
def test_operator_tasks(target: str) -> None:
    tasks = operator_tasks(target)

    assert list(tasks) == list(OPERATORS)
    assert len({task.workload_key for task in tasks.values()}) == len(tasks)
    for name, task in tasks.items():
        assert task.desc == name
        assert task.compute_dag.flop_ct > 0
        assert target.startswith(task.target.kind.name)


def test_a_gpu_that_is_not_there_has_the_numbers_of_nvidias() -> None:
    parameters = operator_tasks(CUDA)["dense"].hardware_params

    assert {name: getattr(parameters, name) for name in NVIDIA_GPU} == NVIDIA_GPU


def test_tasks_of_a_network_for_a_gpu_that_is_not_there() -> None:
    tasks, weights = extract_tasks("mlp", CUDA)

    assert len(tasks) == len(weights) == 4
    assert {task.hardware_params.max_threads_per_block for task in tasks} == {1024}


def test_a_module_of_ones_own_and_hardware_of_ones_choice() -> None:
    target = "llvm -mcpu=core-avx2"
    module, parameters, _ = load_network("mlp")
    hardware = operator_tasks(target)["dense"].hardware_params

    tasks, weights = extract_tasks((module, parameters), target, hardware)

    assert [task.workload_key for task in tasks] == [
        task.workload_key for task in extract_tasks("mlp", target)[0]
    ]
    assert weights == [1, 1, 1, 1]
    assert tasks[0].hardware_params.same_as(hardware)
