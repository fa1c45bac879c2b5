"""Operators to sample and tune: the tasks that tests, benches and first steps use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tlp_tvm.metaschedule.loading.locate import load_tvm


def _dense_bias_gelu() -> list[Any]:
    from tvm import te, topi

    x, weight = te.placeholder((128, 256), name="x"), te.placeholder((512, 256), name="weight")
    bias = te.placeholder((512,), name="bias")
    dense = topi.add(topi.nn.dense(x, weight), bias)
    half = te.compute(
        dense.shape, lambda *i: dense[i] * (0.5 + 0.5 * te.tanh(dense[i] * 0.79788)), name="gelu"
    )
    return [x, weight, bias, half]


_WORKLOADS: dict[str, Callable[[Any], list[Any]]] = {
    "matmul": lambda te: te.matmul(128, 128, 128),
    "batch_matmul": lambda te: te.batch_matmul_nkkm(4, 64, 64, 64),
    "conv2d": lambda te: te.conv2d_nhwc(1, 28, 28, 32, 32, 3, 1, 1),
    "depthwise_conv2d": lambda te: te.depthwise_conv2d_nhwc(1, 56, 56, 32, 3, 1, 1),
    "softmax": lambda te: te.softmax_mn(64, 256),
    "conv2d_bias_bn_relu": lambda te: te.conv2d_nhwc_bn_relu(1, 28, 28, 32, 32, 3, 1, 1),
    "dense_bias_gelu": lambda _: _dense_bias_gelu(),
    "transposed_conv2d": lambda te: te.conv2d_transpose_nhwc(1, 8, 8, 64, 32, 4, 2, 1),
    "conv3d": lambda te: te.conv3d_ndhwc(1, 4, 14, 14, 8, 16, 3, 1, 1),
}

WORKLOADS = tuple(_WORKLOADS)
"""Names for `workload`."""

TARGETS: dict[str, dict[str, Any]] = {
    "llvm": {"kind": "llvm", "num-cores": 2},
    "cuda": {
        "kind": "cuda",
        "arch": "sm_80",
        "max_threads_per_block": 1024,
        "max_shared_memory_per_block": 49152,
        "thread_warp_size": 32,
        "registers_per_block": 65536,
    },
}
"""Targets whose design spaces need no device; programs for "cuda" can be sampled anywhere."""


def workload(name: str) -> Any:
    """An operator as a PrimFunc.

    Args:
        name: one of `WORKLOADS`.
    """
    load_tvm()
    from tvm import te
    from tvm.s_tir.meta_schedule.testing import te_workload

    return te.create_prim_func(_WORKLOADS[name](te_workload))
