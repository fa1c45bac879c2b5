"""Constants are folded with NumPy, to the numbers that TVM's own pass gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from relay_networks import module_of, operators_of

from tlp_tvm.ansor.graph.constants import folding_before, folding_pass
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.builtin import load_network


def numbers(*shape: int, kind: str = "float32") -> Any:
    values = np.random.default_rng(sum(shape)).uniform(0.5, 2.0, shape)
    return load_tvm().relay.const((values * 8).astype(kind), kind)


def folds_here(module: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module after the pass, of which TVM's own gets nothing to do."""
    relay = load_tvm().relay
    nothing = load_tvm().transform.module_pass(lambda module, _: module, opt_level=0, name="nothing")
    with monkeypatch.context() as patch:
        patch.setattr(relay.transform, "FoldConstant", lambda: nothing)
        return folding_pass()(module)


EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda r: r.divide(
        r.negative(r.add(numbers(3, 4), numbers(4))), r.sqrt(r.subtract(numbers(3, 1), r.const(0.1)))
    ),
    "product": lambda r: r.multiply(numbers(2, 3), numbers(2, 3)),
    "same data": lambda r: r.squeeze(r.reshape(r.expand_dims(numbers(4, 6), 1, 2), (2, 1, -1)), [1]),
    "transposed": lambda r: r.transpose(numbers(2, 3, 4), [2, 0, 1]),
    "reversed": lambda r: r.transpose(numbers(2, 3, 4)),
    "integers moved": lambda r: r.transpose(numbers(2, 3, kind="int64"), [1, 0]),
    "repeated": lambda r: r.broadcast_to(numbers(1, 3), (5, 3)),
    "joined": lambda r: r.concatenate([numbers(2, 3), numbers(4, 3)], 0),
    "layout": lambda r: r.layout_transform(numbers(8, 4, 3, 2), "OIHW", "HWIO"),
    "split layout": lambda r: r.layout_transform(numbers(16, 8, 3, 2), "OIHW", "OHWI4i8o"),
    "split channels": lambda r: r.layout_transform(numbers(2, 8, 3, 5), "NCHW", "NCHW4c"),
    "layout of a program": lambda r: r.op.transform._make.auto_scheduler_layout_transform(
        numbers(3, 2, 8, 32), "3ry2rx8rc32ff", "2ff3ry1rx4rc1ff2rx2rc16ff"
    ),
    "a part": lambda r: r.TupleGetItem(r.split(numbers(7, 2), [2, 5], 0).astuple(), 1),
    "a field": lambda r: r.TupleGetItem(r.Tuple([r.add(numbers(2), numbers(2)), numbers(3)]), 0),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_numbers_are_those_of_tvm(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    relay = load_tvm().relay
    infer = relay.transform.InferType()
    kind = "int64" if name.startswith("integers") else "float32"
    x = relay.var("x", shape=(), dtype=kind)
    module = module_of(relay.add(EXPRESSIONS[name](relay), x))

    ours = folds_here(module, monkeypatch)["main"].body.args[0]
    tvms = relay.transform.FoldConstant()(infer(module))["main"].body.args[0]
    np.testing.assert_allclose(ours.data.numpy(), tvms.data.numpy(), rtol=1e-6)
    assert ours.data.dtype == tvms.data.dtype


@pytest.mark.parametrize(("taps", "tile"), [(3, 4), (3, 2), (5, 2)])
def test_weights_for_winograd_are_those_of_tvm_but_for_its_rounding(
    taps: int, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay = load_tvm().relay
    transform = relay.nn.contrib_conv2d_winograd_weight_transform
    x = relay.var("x", shape=(), dtype="float32")
    module = module_of(relay.add(transform(numbers(8, 4, taps, taps), tile), x))

    ours = folds_here(module, monkeypatch)["main"].body.args[0].data.numpy()
    tvms = relay.transform.FoldConstant()(relay.transform.InferType()(module))["main"].body.args[0]
    np.testing.assert_allclose(ours, tvms.data.numpy(), rtol=1e-6, atol=1e-6 * np.abs(ours).max())


@pytest.mark.parametrize(
    "expression",
    [
        lambda r: r.layout_transform(numbers(2, 4, 3, 2, 8), "OIHW8o", "OIHW"),
        lambda r: r.op.transform._make.auto_scheduler_layout_transform(numbers(4, 2, 8), "4a2a8b", "8a8b"),
        lambda r: r.add(numbers(3, kind="int32"), numbers(3, kind="int32")),
        lambda r: r.exp(numbers(3)),
    ],
    ids=["joined axes", "joined parts", "integers", "another operator"],
)
def test_what_is_not_known_here_is_left_to_tvm(
    expression: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = module_of(expression(load_tvm().relay))

    assert len(operators_of(folds_here(module, monkeypatch))) == 1
    assert operators_of(folding_pass()(module)) == []


def test_before_tvm_folds_by_itself_nothing_is_left_to_fold() -> None:
    tvm = load_tvm()
    relay, transform = tvm.relay, tvm.transform
    module = module_of(relay.layout_transform(numbers(16, 8, 3, 2), "OIHW", "OIHW4i8o"))
    seen: list[list[str]] = []

    def note(module: Any, _: Any) -> Any:
        seen.append(operators_of(module))
        return module

    spies = [transform.module_pass(note, opt_level=0, name=name) for name in ("Another", "FoldConstant")]
    with transform.PassContext(instruments=[folding_before()]):
        transform.Sequential(spies)(module)
    assert seen == [["layout_transform"], []]


def test_a_network_of_batch_norms_is_folded_as_by_tvm() -> None:
    tvm = load_tvm()
    transform = tvm.relay.transform
    module, parameters, _ = load_network("resnet_18-64")
    main = tvm.relay.build_module.bind_params_by_name(module["main"], parameters)
    before = tvm.transform.Sequential([transform.InferType(), transform.SimplifyInference()])(
        tvm.IRModule.from_expr(main)
    )
    ours, tvms = folding_pass()(before), transform.FoldConstant()(transform.InferType()(before))

    assert operators_of(ours) == operators_of(tvms)
    assert len(operators_of(ours)) < len(operators_of(before))
