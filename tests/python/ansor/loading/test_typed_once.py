"""Types are inferred after each change, not twice; a network is built to the same code."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.typed_once import NETWORKS, TypedOnce, with_instrument


def network() -> Any:
    """A convolution and its activation, as a module."""
    relay, tvm = load_tvm().relay, load_tvm()
    image = relay.var("image", shape=(1, 8, 12, 12))
    weight = relay.const(np.random.default_rng(0).random((16, 8, 3, 3), np.float32))
    convolved = relay.nn.conv2d(image, weight, channels=16, kernel_size=(3, 3), padding=(1, 1))
    return tvm.IRModule.from_expr(relay.Function([image], relay.nn.relu(convolved)))


def counter() -> tuple[Any, collections.Counter[str]]:
    """An instrument of passes, and how often each has run."""
    ran: collections.Counter[str] = collections.Counter()

    class Counts:
        def run_before_pass(self, _module: Any, info: Any) -> None:
            ran[str(info.name)] += 1

    return load_tvm().instrument.pass_instrument(Counts)(), ran


def changed(module: Any, _: Any) -> Any:
    """Another function, which gives the same."""
    relay, tvm = load_tvm().relay, load_tvm()
    main = module["main"]
    return tvm.IRModule.from_expr(relay.Function(main.params, relay.nn.relu(main.body)))


def test_types_are_inferred_once_until_something_changes() -> None:
    tvm = load_tvm()
    infer = tvm.relay.transform.InferType()
    change = tvm.transform.module_pass(changed, opt_level=0, name="Changed")
    counts, ran = counter()
    with tvm.transform.PassContext(opt_level=NETWORKS, instruments=[counts]):
        after = tvm.transform.Sequential([infer, infer, infer, change, infer, infer])(network())

    assert ran["InferType"] == 2
    assert str(after["main"].checked_type.ret_type.shape) == "[1, 16, 12, 12]"


def test_contexts_that_begin_meanwhile_have_another_instrument() -> None:
    tvm = load_tvm()
    infer = tvm.relay.transform.InferType()
    counts, ran = counter()
    for level in (NETWORKS, NETWORKS - 1):
        with with_instrument(counts), tvm.transform.PassContext(opt_level=level):
            infer(network())
        with tvm.transform.PassContext(opt_level=level):
            infer(network())

    assert ran["InferType"] == 1


def test_contexts_of_single_programs_are_as_tvm_has_them() -> None:
    tvm = load_tvm()
    infer = tvm.relay.transform.InferType()
    counts, ran = counter()
    with tvm.transform.PassContext(opt_level=NETWORKS - 1, instruments=[counts]):
        tvm.transform.Sequential([infer, infer])(network())

    assert ran["InferType"] == 2


def test_a_network_is_built_to_the_same_with_fewer_inferences(monkeypatch: pytest.MonkeyPatch) -> None:
    tvm = load_tvm()

    def built() -> tuple[Any, int]:
        counts, ran = counter()
        with tvm.transform.PassContext(opt_level=NETWORKS, instruments=[counts]):
            return tvm.relay.build(network(), target="llvm"), ran["InferType"]

    ours, fewer = built()
    context = tvm.transform.PassContext
    monkeypatch.setattr(context, "__init__", context.__init__.__wrapped__)
    tvms, all_of_them = built()

    assert 0 < 3 * fewer < all_of_them
    assert ours.get_graph_json() == tvms.get_graph_json()
    for name, value in tvms.get_params().items():
        np.testing.assert_array_equal(ours.get_params()[name].numpy(), value.numpy())


def test_the_last_module_is_kept_until_the_context_ends() -> None:
    info = load_tvm().relay.transform.InferType().info
    modules = [network() for _ in range(2)]
    once = TypedOnce()
    once.enter_pass_ctx()
    once.enter_pass_ctx()
    for module in modules:
        once.run_after_pass(module, info)

    assert [once.should_run(module, info) for module in modules] == [True, False]
    once.exit_pass_ctx()
    assert not once.should_run(modules[1], info)
    once.exit_pass_ctx()
    assert once.should_run(modules[1], info)
