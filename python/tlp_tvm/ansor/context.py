"""The context of a task as a vector: its shapes, element type, work and hardware, for models that want them.

A record and a live task give the same vector: both go through the same `TaskKey`.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.ansor.reading.records import TaskKey

TENSORS = 6
"""Tensors of a workload that are shown: inputs, then the output; later ones are cut."""

DIMENSIONS = 6
"""Dimensions of a tensor that are shown, right-aligned: the last one is contiguous in memory."""

SCALARS = 8
"""Plain numbers among a workload's arguments (strides, paddings) that are shown."""

HARDWARE = 8
"""Numbers of TVM's HardwareParams: cores, vector bytes, cache line bytes, shared and local memory per block,
threads per block, vthread extent, warp size."""

ELEMENT_TYPES = ("float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64")
TARGETS = ("llvm", "cuda", "rocm", "opencl", "vulkan", "metal")

VECTOR_BITS = (
    ("avx512", 512), ("skylake-avx512", 512), ("cascadelake", 512), ("icelake", 512), ("sapphirerapids", 512),
    ("znver4", 512), ("znver5", 512), ("avx2", 256), ("haswell", 256), ("broadwell", 256), ("skylake", 256),
    ("znver", 256), ("sse", 128), ("nehalem", 128), ("neon", 128), ("aarch64", 128), ("cortex", 128),
)  # fmt: skip
"""What a target names -> bits of its vectors; the first that occurs counts."""

CONTEXT_COLUMNS: tuple[str, ...] = (
    *(f"tensor{t}.dim{d}" for t in range(TENSORS) for d in range(-DIMENSIONS, 0)),
    *(f"scalar{s}" for s in range(SCALARS)),
    "tensors",
    *(f"type.{name}" for name in ELEMENT_TYPES),
    "flops.known",
    "flops",
    *(f"target.{name}" for name in TARGETS),
    "target.vector_bits",
    "hardware.known",
    *(f"hardware{h}" for h in range(HARDWARE)),
)
"""Meaning of each column of a context vector."""


def context_of(task: TaskKey | Any, flops: float | None = None) -> NDArray[np.float32]:
    """The context vector of a task.

    Args:
        task: a `TaskKey` from a record, or an `auto_scheduler.SearchTask`.
        flops: floating-point operations of one run, where known; a SearchTask knows its own.

    Returns:
        (len(CONTEXT_COLUMNS),) float32. Sizes stand as log2(1 + x) / 8; what is unknown is 0.
    """
    key = task
    if not isinstance(task, TaskKey):
        key = key_of(task)
        flops = float(task.compute_dag.flop_ct) if flops is None else flops
    shapes, scalars, element_type = _arguments(key.workload_key)
    vector: list[float] = []
    for t in range(TENSORS):
        shape = shapes[t][-DIMENSIONS:] if t < len(shapes) else []
        vector += [0.0] * (DIMENSIONS - len(shape)) + [_log(size) for size in shape]
    vector += [_log(s) for s in scalars[:SCALARS]] + [0.0] * (SCALARS - len(scalars[:SCALARS]))
    vector.append(len(shapes) / TENSORS)
    vector += [float(element_type == name) for name in ELEMENT_TYPES]
    vector += [float(flops is not None), 0.0 if flops is None else _log(flops)]
    kind = key.target.split(" ", 1)[0]
    vector += [float(kind == name) for name in TARGETS]
    vector.append(_vector_bits(key.target) / 512)
    hardware = list(key.hardware or ())[:HARDWARE]
    vector.append(float(key.hardware is not None))
    vector += [_log(value) for value in hardware] + [0.0] * (HARDWARE - len(hardware))
    return np.array(vector, np.float32)


def key_of(task: Any) -> TaskKey:
    """What TVM's record of a `SearchTask` says of it.

    Args:
        task: `auto_scheduler.SearchTask`.
    """
    parameters = task.hardware_params
    return TaskKey(
        workload_key=str(task.workload_key),
        target=str(task.target),
        hardware=(
            int(parameters.num_cores),
            int(parameters.vector_unit_bytes),
            int(parameters.cache_line_bytes),
            int(parameters.max_shared_memory_per_block),
            int(parameters.max_local_memory_per_block),
            int(parameters.max_threads_per_block),
            int(parameters.max_vthread_extent),
            int(parameters.warp_size),
        ),
    )


def _log(value: float) -> float:
    return float(np.sign(value) * np.log2(1.0 + abs(float(value))) / 8)


def _vector_bits(target: str) -> int:
    return next((bits for name, bits in VECTOR_BITS if name in target), 0)


def _arguments(workload_key: str) -> tuple[list[list[float]], list[float], str]:
    """Shapes, plain numbers and element type among a workload's arguments.

    A key is JSON: [hash, shape, ...] of a network's task, [function, argument, ...] of one a user registered,
    or a bare hash or name, which says nothing.
    """
    try:
        key = json.loads(workload_key)
    except json.JSONDecodeError:
        return [], [], ""
    shapes: list[list[float]] = []
    scalars: list[float] = []
    types: list[str] = []

    def visit(value: Any) -> None:
        if isinstance(value, (int, float)):
            scalars.append(float(value))
        elif isinstance(value, str):
            types.extend(re.findall("|".join(ELEMENT_TYPES), value))
        elif isinstance(value, list):
            if value and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value):
                shapes.append([float(v) for v in value])
            else:
                for v in value:
                    visit(v)

    for argument in key[1:] if isinstance(key, list) else []:
        visit(argument)
    return shapes, scalars, types[0] if types else ""
