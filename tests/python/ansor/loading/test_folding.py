"""Kernels that fold constants: compiled once where they are equal, and right where they are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tlp_tvm.ansor.loading import folding
from tlp_tvm.ansor.loading.folding import fold_faster
from tlp_tvm.ansor.loading.locate import load_tvm

Compiled = list[Any]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiled]:
    """What TVM compiles, with an empty cache."""
    tvm = load_tvm()
    from tvm.relay.backend import _backend

    original, seen = _backend.build, []

    def build(module: Any, *others: Any) -> Any:
        seen.append(module)
        return original(module, *others)

    monkeypatch.setattr(_backend, "build", build)
    fold_faster(tvm)
    yield seen
    monkeypatch.undo()
    fold_faster(tvm)


def folded(*arrays: Any) -> list[Any]:
    """Constants, transposed, each multiplied by two."""
    relay, tvm = load_tvm().relay, load_tvm()
    results = [relay.multiply(relay.transpose(relay.const(each)), relay.const(2.0)) for each in arrays]
    module = tvm.IRModule.from_expr(relay.Function([], relay.Tuple(results)))
    body = relay.transform.FoldConstant()(relay.transform.InferType()(module))["main"].body
    return [each.data.numpy() for each in body.fields]


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random(shape, np.float32)


def test_equal_kernels_are_compiled_once(compiled: Compiled) -> None:
    first, second = numbers(3, 5), numbers(3, 5, seed=1)

    results = [*folded(first, second), *folded(second)]

    for result, array in zip(results, (first, second, second), strict=True):
        np.testing.assert_array_equal(result, array.T * 2)
    assert len(compiled) == 2  # a transpose, a product


def test_others_are_compiled_anew(compiled: Compiled) -> None:
    arrays = numbers(3, 5), numbers(5, 3), numbers(2, 5)

    for result, array in zip(folded(*arrays), arrays, strict=True):
        np.testing.assert_array_equal(result, array.T * 2)
    assert len(compiled) == 6


def test_the_kernels_used_least_lately_go_first(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "MOST_KERNELS", 4)
    for rows in (3, 4, 3, 5, 3, 4):
        np.testing.assert_array_equal(folded(numbers(rows, 2))[0], numbers(rows, 2).T * 2)
    assert len(compiled) == 2 * 4  # 3, 4, 5, and 4 again


def test_its_own_flags_are_looked_up_once() -> None:
    load_tvm()
    from tvm.relay.backend import te_compiler

    assert te_compiler.libinfo() is te_compiler.libinfo()
