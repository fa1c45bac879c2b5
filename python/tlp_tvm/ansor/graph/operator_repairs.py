"""Computes of operators in the place of TVM's, for extraction and build alike.

For a network on a CPU, Ansor lays the constant weights of an operator out as its program walks them. The TVM
0.17 inside the wheel of `bitblas` cannot do that for dense layers: `topi.nn.matmul` takes its axes as
`*indices`, so that they are called `i0` and `i1`, whose digits `IndexRewriter` reads as extents; and it asks
for `len(tensor_b).shape`. While `packable_dense` is entered, products of matrices have axes `i`, `j` and `k`.

Winograd's convolutions have tiles of four pixels there, whatever their weights are, and of an image that has,
once padded, more rows than columns they read beyond its end, and are wrong. While `winograd_of_any_tile` is
entered, weights say which tiles they are for.

Measuring processes need no repair: a task brings its compute along.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tlp_tvm.ansor.graph.winograd.winograd_products import are_products, extents_of, products
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.lowered.winograd_matrices import TAPS

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


@contextmanager
def winograd_of_any_tile() -> Iterator[None]:
    """Have TVM compute Winograd's convolutions in the tiles that their transformed weights are for."""
    topi = load_tvm().topi
    home = sys.modules[topi.nn.conv2d.__module__]
    name = "_conv2d_winograd_nhwc_impl"
    original = getattr(home, name, None)  # not in older TVMs
    if original is None:
        yield
        return

    def repaired(*given: Any, **named: Any) -> Any:
        asked = inspect.signature(original).bind(*given, **named).arguments
        if not asked.get("pre_computed"):
            return original(**asked)
        layout = asked.get("auto_scheduler_rewritten_layout") or ""
        shape = extents_of(asked["weight"], layout)
        from tvm.topi.nn.utils import get_pad_tuple

        top, left, bottom, right = get_pad_tuple(asked["padding"], (TAPS, TAPS))
        if are_products(asked["data"], shape, (top, left, bottom, right)):
            return products(asked["data"], asked["weight"], layout)
        if int(asked["data"].shape[1]) + top + bottom > int(asked["data"].shape[2]) + left + right:
            return winograd(asked["data"], asked["weight"], asked["padding"], asked["out_dtype"], layout)
        return original(**{**asked, "tile_size": shape[0] - TAPS + 1})

    setattr(home, name, repaired)
    try:
        yield
    finally:
        setattr(home, name, original)


def winograd(data: Any, weight: Any, padding: Any, out_dtype: str, rewritten: str = "") -> Any:
    """A convolution of 3 x 3 taps in Winograd's way (Lavin and Gray, arXiv:1509.09308), channels last.

    Args:
        data: (images, rows, columns, channels).
        weight: transformed, (tile + 2, tile + 2, channels given, channels), or as `rewritten` has it.
        padding: of rows and columns, as `topi.nn` takes it.
        out_dtype: of the result.
        rewritten: the layout of packed weights; empty where they are as they come.
    """
    tvm = load_tvm()
    from tvm.topi.nn.utils import get_pad_tuple

    topi, te = tvm.topi, tvm.te
    alpha, _, given, entering = extents_of(weight, rewritten)
    tile = alpha - TAPS + 1
    to_pixels, to_sums, _ = topi.nn.winograd_util.winograd_transform_matrices(tile, TAPS, out_dtype)
    images, height, width, _ = (int(extent) for extent in data.shape)
    top, left, bottom, right = get_pad_tuple(padding, (TAPS, TAPS))
    rows, columns = height + top + bottom - TAPS + 1, width + left + right - TAPS + 1
    down, across = -(-rows // tile), -(-columns // tile)
    after = (0, down * tile + TAPS - 1 - height - top, across * tile + TAPS - 1 - width - left, 0)
    padded = topi.nn.pad(data, (0, top, left, 0), after, name="data_pad")
    each = down * across
    count, simplified = images * each, "auto_scheduler_simplify_const_tensor_indices"
    tiles = te.compute(
        (alpha, alpha, count, entering),
        lambda eps, nu, p, ci: padded[p // each, p // across % down * tile + eps, p % across * tile + nu, ci],
        name="input_tile",
    )
    r_a, r_b = te.reduce_axis((0, alpha), "r_a"), te.reduce_axis((0, alpha), "r_b")
    packed = te.compute(
        (alpha, alpha, count, entering),
        lambda eps, nu, p, ci: te.sum(
            tiles[r_a, r_b, p, ci] * to_sums[r_a, eps] * to_sums[r_b, nu], [r_a, r_b]
        ),
        name="data_pack",
        attrs={simplified: ["eps", "nu", "r_a", "r_b"]},
    )
    sums = products(packed, weight, rewritten, "bgemm")
    r_a, r_b = te.reduce_axis((0, alpha), "r_a"), te.reduce_axis((0, alpha), "r_b")
    pixels = te.compute(
        (tile, tile, count, given),
        lambda vh, vw, p, co: te.sum(
            sums[r_a, r_b, p, co] * to_pixels[r_a, vh] * to_pixels[r_b, vw], [r_a, r_b]
        ),
        name="inverse",
        attrs={simplified: ["vh", "vw", "r_a", "r_b"]},
    )
    return te.compute(
        (images, rows, columns, given),
        lambda n, h, w, co: pixels[h % tile, w % tile, n * each + h // tile * across + w // tile, co],
        name="conv2d_winograd",
    )
