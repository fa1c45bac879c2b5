"""TVM can lay the weights of dense layers out anew with the repaired compute, and cannot without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tlp_tvm.ansor.graph.packed_dense import packable_dense
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.search.sampling import sample_states

TARGET = "llvm -num-cores=1"


def dense_task() -> Any:
    """The task of a dense layer, from a network, as `extract_tasks` gives it."""
    tvm = load_tvm()
    relay = tvm.relay
    data = relay.var("data", shape=(8, 32))
    weights = relay.const(np.ones((48, 32), dtype=np.float32))
    body = relay.nn.bias_add(relay.nn.dense(data, weights), relay.const(np.ones(48, dtype=np.float32)))
    module = tvm.IRModule.from_expr(relay.Function([data], body))
    [task] = tvm.auto_scheduler.extract_tasks(module["main"], {}, TARGET)[0]
    return task


def rewritten(task: Any) -> Any:
    """The compute and schedule of a program of it, with its weights packed."""
    state = sample_states(task, 16)[0]
    return task.compute_dag.apply_steps_from_state(state, layout_rewrite=task.layout_rewrite_option)


def test_weights_are_packed_with_the_repair() -> None:
    with packable_dense():
        task = dense_task()
    _, tensors = rewritten(task)

    assert len(tensors[1].shape) > 2


def test_this_tvm_still_needs_the_repair() -> None:
    """Fails with a TVM that packs by itself: then the repair can go."""
    with pytest.raises(load_tvm().TVMError):
        rewritten(dense_task())


def test_the_repair_ends_with_its_block() -> None:
    topi = load_tvm().topi
    before = topi.nn.matmul
    with packable_dense():
        assert topi.nn.matmul is not before
    assert topi.nn.matmul is before


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_products_are_those_of_tvm(transpose_a: bool, transpose_b: bool) -> None:
    tvm = load_tvm()
    shapes = ((6, 4) if transpose_a else (4, 6)), ((5, 6) if transpose_b else (6, 5))
    a, b = (tvm.te.placeholder(shape, name=name) for shape, name in zip(shapes, "ab", strict=True))
    arrays = [
        np.random.default_rng(i).standard_normal(shape, dtype=np.float32) for i, shape in enumerate(shapes)
    ]
    with packable_dense():
        product = tvm.topi.nn.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    module = tvm.build(tvm.te.create_schedule(product.op), [a, b, product], "llvm")
    out = tvm.nd.empty((4, 5))
    module(*map(tvm.nd.array, arrays), out)

    expected = (arrays[0].T if transpose_a else arrays[0]) @ (arrays[1].T if transpose_b else arrays[1])
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)
