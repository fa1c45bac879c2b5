"""Search tasks: those of a network, and small ones of single operators for tests, checks and benchmarks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tlp_tvm.ansor.graph.constants import folding_before
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.typed_once import with_instrument
from tlp_tvm.ansor.networks.builtin import load_network

NVIDIA_GPU = {
    "num_cores": -1,
    "vector_unit_bytes": 16,
    "cache_line_bytes": 64,
    "max_shared_memory_per_block": 49152,
    "max_local_memory_per_block": 2**31 - 1,
    "max_threads_per_block": 1024,
    "max_vthread_extent": 8,
    "warp_size": 32,
}
"""What TVM asks an NVIDIA GPU's driver for; from K80 to RTX 3080 all give these numbers."""


def extract_tasks(network: Any, target: str, hardware: Any = None) -> tuple[list[Any], list[int]]:
    """Split a network into its tuning tasks.

    Args:
        network: a built-in name (`networks.NETWORKS`), or a pair of Relay module and parameters.
        target: TVM target, e.g. "llvm -mcpu=core-avx2 -num-cores=2". Without a GPU, a CUDA target should name
            its architecture, or TVM takes -arch=sm_50.
        hardware: `auto_scheduler.HardwareParams`; the default is what TVM finds for the target on this
            machine, or `NVIDIA_GPU` for a CUDA target without a GPU.

    Returns:
        The tasks (`auto_scheduler.SearchTask`), and how often each appears in the network.

    Raises:
        NetworkError: no such built-in network.
    """
    tvm = load_tvm()
    module, parameters = load_network(network)[:2] if isinstance(network, str) else network
    hardware = hardware or hardware_without_driver(target)
    with _silent_threads(), with_instrument(folding_before()):
        tasks, weights = tvm.auto_scheduler.extract_tasks(
            module["main"], parameters, target, hardware_params=hardware
        )
    return list(tasks), [int(weight) for weight in weights]


@contextmanager
def _silent_threads() -> Iterator[None]:
    """TVM splits a network in a thread; what it cannot compile there, a build of the network says as well."""
    hook = threading.excepthook
    threading.excepthook = lambda _: None
    try:
        yield
    finally:
        threading.excepthook = hook


def operator_tasks(target: str) -> dict[str, Any]:
    """Small tasks of single operators, each with an epilogue where networks have one.

    Args:
        target: TVM target; "cuda" needs no GPU.

    Returns:
        Key of `OPERATORS` to `auto_scheduler.SearchTask`.
    """
    return {name: operator_task(name, target) for name in OPERATORS}


def operator_task(name: str, target: str) -> Any:
    """One of `operator_tasks`.

    Args:
        name: key of `OPERATORS`.
        target: TVM target; "cuda" needs no GPU.
    """
    tvm = load_tvm()
    auto_scheduler = tvm.auto_scheduler
    with tvm.target.Target(target):
        tensors = OPERATORS[name](tvm)
    dag = auto_scheduler.ComputeDAG(tensors)
    key = auto_scheduler.workload_registry.register_workload_tensors(dag.workload_key(), tensors)
    return auto_scheduler.SearchTask(
        compute_dag=dag,
        workload_key=key,
        target=target,
        hardware_params=hardware_without_driver(target),
        desc=name,
    )


def hardware_without_driver(target: str) -> Any:
    """`HardwareParams` for a CUDA target where no driver can be asked; else None, for TVM to find them."""
    tvm = load_tvm()
    if tvm.target.Target(target).kind.name != "cuda" or tvm.cuda().exist:
        return None
    return tvm.auto_scheduler.HardwareParams(**NVIDIA_GPU)


def _conv2d(tvm: Any) -> list[Any]:
    data = tvm.te.placeholder((1, 28, 28, 64), name="data")
    kernel = tvm.te.placeholder((3, 3, 64, 64), name="kernel")
    bias = tvm.te.placeholder((64,), name="bias")
    convolved = tvm.topi.nn.conv2d_nhwc(data, kernel, stride=1, padding=1, dilation=1)
    return [data, kernel, bias, tvm.topi.nn.relu(tvm.topi.add(convolved, bias))]


def _depthwise_conv2d(tvm: Any) -> list[Any]:
    data = tvm.te.placeholder((1, 56, 56, 32), name="data")
    kernel = tvm.te.placeholder((3, 3, 32, 1), name="kernel")
    convolved = tvm.topi.nn.depthwise_conv2d_nhwc(data, kernel, stride=1, padding=1, dilation=1)
    return [data, kernel, tvm.topi.nn.relu(convolved)]


def _dense(tvm: Any) -> list[Any]:
    data = tvm.te.placeholder((128, 256), name="data")
    weight = tvm.te.placeholder((512, 256), name="weight")
    bias = tvm.te.placeholder((512,), name="bias")
    return [data, weight, bias, tvm.topi.add(tvm.topi.nn.dense(data, weight), bias)]


def _batch_matmul(tvm: Any) -> list[Any]:
    left = tvm.te.placeholder((12, 128, 64), name="left")
    right = tvm.te.placeholder((12, 128, 64), name="right")
    return [left, right, tvm.topi.nn.batch_matmul(left, right)]


def _softmax(tvm: Any) -> list[Any]:
    data = tvm.te.placeholder((128, 256), name="data")
    return [data, tvm.topi.nn.softmax(data, axis=-1)]


def _reduction(tvm: Any) -> list[Any]:
    data = tvm.te.placeholder((4, 65536), name="data")
    return [data, tvm.topi.sum(tvm.topi.multiply(data, data), axis=1)]


OPERATORS: dict[str, Callable[[Any], list[Any]]] = {
    "conv2d": _conv2d,
    "depthwise_conv2d": _depthwise_conv2d,
    "dense": _dense,
    "batch_matmul": _batch_matmul,
    "softmax": _softmax,
    "reduction": _reduction,
}
"""Name to a function of the module `tvm` that gives input and output tensors; few outputs and a long axis in
`reduction`, so that Ansor factors it (RF)."""
