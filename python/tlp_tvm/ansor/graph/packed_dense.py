"""Dense layers whose weights TVM can pack: a compute that its layout rewriting understands.

For a network on a CPU, Ansor lays the constant weights of an operator out as its program walks them. The TVM
0.17 inside the wheel of `bitblas` cannot do that for dense layers: `topi.nn.matmul` takes its axes as
`*indices`, so that they are called `i0` and `i1`, whose digits `IndexRewriter` reads as extents; and it asks
for `len(tensor_b).shape`. While `packable_dense` is entered, products of matrices have axes `i`, `j` and `k`.
Measuring processes need no repair: a task brings its compute along.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm

_NAMES = {(True, True): "T_matmul_TT", (True, False): "T_matmul_TN", (False, True): "T_matmul_NT"}


@contextmanager
def packable_dense() -> Iterator[None]:
    """Have TVM make dense layers of the repaired compute, for extraction and build alike."""
    topi = load_tvm().topi
    home = sys.modules[topi.nn.dense.__module__]
    original = home.matmul

    def repaired(tensor_a: Any, tensor_b: Any, *others: Any, **named: Any) -> Any:
        asked = inspect.signature(original).bind(tensor_a, tensor_b, *others, **named).arguments
        packed = bool(asked.get("auto_scheduler_rewritten_layout"))
        if len(tensor_a.shape) == 2 and (packed or len(tensor_b.shape) == 2):
            return matmul(**asked)
        return original(tensor_a, tensor_b, *others, **named)

    home.matmul = topi.nn.matmul = repaired  # type: ignore[attr-defined]
    try:
        yield
    finally:
        home.matmul = topi.nn.matmul = original  # type: ignore[attr-defined]


def matmul(
    tensor_a: Any,
    tensor_b: Any,
    bias: Any = None,
    out_dtype: Any = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Any:
    """A product of matrices, as `topi.nn.matmul` takes its arguments.

    Args:
        tensor_a: (rows, inner), or (inner, rows).
        tensor_b: (inner, columns), or (columns, inner), or as `auto_scheduler_rewritten_layout` has it.
        bias: (columns,), or None.
        out_dtype: of the result; that of `tensor_a` if None.
        transpose_a: whether `tensor_a` is (inner, rows).
        transpose_b: whether `tensor_b` is (columns, inner).
        auto_scheduler_rewritten_layout: of packed weights, e.g. "2k3j4k"; empty where they are as they come.
        meta_schedule_original_shape: of MetaSchedule's packed weights.
    """
    tvm = load_tvm()
    auto_scheduler, te = tvm.auto_scheduler, tvm.te
    if meta_schedule_original_shape:
        raise ValueError("expected no packed weights of MetaSchedule in a build for Ansor")
    out_dtype = out_dtype or tensor_a.dtype
    inner, rows = tensor_a.shape if transpose_a else (tensor_a.shape[1], tensor_a.shape[0])
    if auto_scheduler_rewritten_layout:
        columns, _ = auto_scheduler.get_shape_from_rewritten_layout(
            auto_scheduler_rewritten_layout, ["j", "k"]
        )
        auto_scheduler.remove_index_check(tensor_b)
    else:
        columns = tensor_b.shape[0] if transpose_b else tensor_b.shape[1]
    k = te.reduce_axis((0, inner), name="k")

    def one(i: Any, j: Any) -> Any:
        left = tensor_a[k, i] if transpose_a else tensor_a[i, k]
        right = tensor_b[j, k] if transpose_b else tensor_b[k, j]
        return te.sum(left.astype(out_dtype) * right.astype(out_dtype), axis=k)

    product = te.compute(
        (rows, columns),
        one,
        name=_NAMES.get((transpose_a, transpose_b), "T_matmul_NN"),
        tag="dense" if (transpose_a, transpose_b) == (False, True) else "matmul",
        attrs={"layout_free_placeholders": [tensor_b]},
    )
    if bias is not None:
        product = tvm.topi.add(product, bias.astype(out_dtype))
    if auto_scheduler_rewritten_layout:
        product = auto_scheduler.rewrite_compute_body(product, auto_scheduler_rewritten_layout)
    return product
