"""Convolutions in other layouts and ways, and factors of channels: in the weights, or on activations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from relay_networks import constant, module_of, operators_of, outputs_of

from tlp_tvm.ansor.graph.convolutions import (
    channels_last,
    channels_last_in_groups,
    channels_last_in_volumes,
    with_gates_kept,
    with_winograd,
    without_transposed_convolutions,
)
from tlp_tvm.ansor.graph.pipeline import prepare
from tlp_tvm.ansor.loading.locate import load_tvm


def gated(image: int, columns: int, factor: Any = None) -> Any:
    """An activation times a factor of each of its 8 channels, and a convolution; a gate if none is given."""
    relay = load_tvm().relay
    x = relay.var("x", shape=(1, image, image, 8))
    activation = relay.nn.relu(x)
    if factor is None:
        pooled = relay.nn.adaptive_avg_pool2d(activation, output_size=(1, 1), layout="NHWC")
        factor = relay.sigmoid(pooled)
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO", "channels": columns, "kernel_size": (1, 1)}
    return module_of(
        relay.nn.conv2d(relay.multiply(activation, factor), constant(1, 1, 8, columns), **layouts)
    )


def scales_weights(module: Any) -> bool:
    """Whether the weights of the convolution are computed."""
    return not isinstance(module["main"].body.args[1], load_tvm().relay.Constant)


def folded(module: Any) -> Any:
    """What becomes of the factors when a network is prepared and built."""
    tvm = load_tvm()
    transform = tvm.relay.transform
    passes = [transform.InferType(), transform.BackwardFoldScaleAxis(), transform.ForwardFoldScaleAxis()]
    with tvm.transform.PassContext(opt_level=4):
        return tvm.transform.Sequential([*passes, transform.FoldConstant()])(module)


@pytest.mark.parametrize(
    ("groups", "leaving", "how"),
    [
        (2, 16, {"strides": (2, 1), "padding": (1, 0, 2, 1)}),
        (4, 8, {"dilation": (1, 2), "padding": (1, 2)}),
        (8, 16, {"padding": (1, 1)}),  # two channels out of each one
    ],
)
def test_convolutions_in_groups_compute_the_same_with_channels_last(
    groups: int, leaving: int, how: dict[str, Any]
) -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(2, 8, 9, 11))
    weights = constant(leaving, 8 // groups, 3, 3)
    before = module_of(
        relay.nn.relu(relay.nn.conv2d(x, weights, groups=groups, channels=leaving, kernel_size=(3, 3), **how))
    )
    after = channels_last_in_groups(before)

    assert operators_of(after) == ["layout_transform", "nn.conv2d", "nn.relu", "layout_transform"]
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5, atol=1e-6)
    assert channels_last(before) is before


TRANSPOSED = {
    "doubles": {"kernel_size": (4, 4), "strides": (2, 2), "padding": (1, 1)},
    "apart": {"kernel_size": (2, 2), "strides": (2, 2)},
    "uneven": {"kernel_size": (3, 5), "strides": (2, 3), "padding": (1, 2, 0, 1), "output_padding": (1, 0)},
    "of stride 1": {"kernel_size": (3, 3), "padding": (1, 1)},
}


def upsampled(how: dict[str, Any], groups: int = 1) -> Any:
    """A convolution, a transposed one, and a sum with a factor."""
    relay = load_tvm().relay
    x = relay.var("x", shape=(2, 4, 5, 6))
    narrow = relay.nn.relu(relay.nn.conv2d(x, constant(8, 4, 3, 3), padding=(1, 1)))
    weights = constant(8, 6 // groups, *how["kernel_size"])
    wide = relay.nn.conv2d_transpose(narrow, weights, channels=6, groups=groups, **how)
    return module_of(relay.nn.relu(relay.add(wide, constant(6, 1, 1))))


@pytest.mark.parametrize("how", TRANSPOSED.values(), ids=list(TRANSPOSED))
def test_transposed_convolutions_are_convolutions_with_channels_last(how: dict[str, Any]) -> None:
    before = upsampled(how)
    after = without_transposed_convolutions(before)

    names = operators_of(after)
    assert names.count("nn.conv2d") == 2
    assert "nn.conv2d_transpose" not in names
    assert names.count("layout_transform") == 2, "of what is given and of the result"
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("how", "groups"),
    [
        ({"kernel_size": (4, 4), "strides": (2, 2)}, 2),
        ({"kernel_size": (3, 3), "dilation": (2, 2)}, 1),
        ({"kernel_size": (2, 2), "strides": (1, 1), "padding": (2, 2)}, 1),  # skips what is read
    ],
)
def test_a_network_with_another_transposed_convolution_stays(how: dict[str, Any], groups: int) -> None:
    before = upsampled(how, groups)

    assert without_transposed_convolutions(before) is before


def test_the_list_of_passes_has_no_transposed_convolution_left() -> None:
    before = upsampled(TRANSPOSED["doubles"])
    after = prepare(before, {}, load_tvm().target.Target("llvm -num-cores=1"))

    assert "no zeros between" in after.passes
    assert "nn.conv2d_transpose" not in operators_of(after.module)
    np.testing.assert_allclose(outputs_of(after.module)[0], outputs_of(before)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2])
def test_volumes_have_channels_last_where_all_convolutions_are_dense(groups: int) -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(1, 4, 5, 6, 7))
    sizes = {"channels": 8, "kernel_size": (3, 3, 3), "padding": (1, 1, 1), "groups": groups}
    first = relay.nn.relu(relay.nn.conv3d(x, constant(8, 4 // groups, 3, 3, 3), **sizes))
    pooled = relay.nn.max_pool3d(first, pool_size=(1, 2, 2), strides=(1, 2, 2))
    sizes |= {"strides": (2, 1, 1), "groups": 1}
    before = module_of(relay.nn.conv3d(pooled, constant(8, 8, 3, 3, 3), **sizes))
    after = channels_last_in_volumes(before)

    expected = ["nn.conv3d", "nn.relu", "nn.max_pool3d", "nn.conv3d"]
    if groups == 1:
        expected = ["layout_transform", *expected, "layout_transform"]
    assert operators_of(after) == expected
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("image", "columns", "kept"), [(3, 10, True), (3, 9, False), (6, 10, False)])
def test_a_gate_scales_the_smaller(image: int, columns: int, kept: bool) -> None:
    before = gated(image, columns)
    after = folded(with_gates_kept(before))

    assert scales_weights(folded(before))
    assert scales_weights(after) is not kept
    assert operators_of(after).count("multiply") == 1
    np.testing.assert_allclose(outputs_of(after)[0], outputs_of(before)[0], rtol=1e-5, atol=1e-6)


def test_a_constant_factor_is_in_the_weights() -> None:
    after = folded(with_gates_kept(gated(3, 10, constant(8))))

    assert operators_of(after) == ["nn.relu", "nn.conv2d"]


def test_a_product_of_two_activations_is_no_gate() -> None:
    relay = load_tvm().relay
    before = gated(3, 10, relay.var("y", shape=(1, 3, 3, 8)))

    assert load_tvm().ir.structural_equal(with_gates_kept(before), before)


def test_the_list_of_passes_keeps_gates_and_a_build_does_too() -> None:
    tvm = load_tvm()
    before = gated(3, 10)
    after = prepare(before, {}, tvm.target.Target("llvm -num-cores=1"))
    with tvm.transform.PassContext(opt_level=3):
        built, _ = tvm.relay.optimize(after.module, target="llvm -num-cores=1")

    assert "kept gates" in after.passes
    assert ["multiply"] in _kernels(built)
    assert ["nn.conv2d"] in _kernels(built)
    np.testing.assert_allclose(outputs_of(after.module)[0], outputs_of(before)[0], rtol=1e-4, atol=1e-6)


def _kernels(module: Any) -> list[list[str]]:
    """The operators of each fused function of an optimised module."""
    tvm = load_tvm()
    found: list[list[str]] = []

    def visit(expression: Any) -> None:
        if isinstance(expression, tvm.relay.Function) and "Primitive" in _names(expression.attrs):
            found.append(operators_of({"main": expression}))

    tvm.relay.analysis.post_order_visit(module["main"], visit)
    return found


def _names(attributes: Any) -> list[str]:
    return [] if attributes is None else [str(name) for name in attributes.keys()]  # noqa: SIM118


def three_by_three(shape: tuple[int, ...] = (1, 16, 16, 64), given: int = 64, **how: Any) -> Any:
    """A convolution of 3 x 3 taps with channels last, and its activation."""
    relay = load_tvm().relay
    weights = constant(3, 3, shape[3] // how.get("groups", 1), given)
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO", "channels": given, "kernel_size": (3, 3)}
    result = relay.nn.conv2d(relay.var("x", shape=shape), weights, **{"padding": (1, 1), **layouts, **how})
    return module_of(relay.nn.relu(result))


def outputs_by_ansor(module: Any) -> Any:
    """What a network gives that is built for Ansor's programs, without one."""
    tvm = load_tvm()
    from tvm.contrib import graph_executor

    prepared = prepare(module, {}, tvm.target.Target("llvm -num-cores=1"))
    settings = {"opt_level": 3, "config": {"relay.backend.use_auto_scheduler": True}}
    with prepared.operators(), tvm.transform.PassContext(**settings):
        library = tvm.relay.build(prepared.module, target="llvm -num-cores=1")
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    [variable] = module["main"].params
    shape = [int(extent) for extent in variable.type_annotation.shape]
    executor.run(**{variable.name_hint: np.random.default_rng(1).standard_normal(shape, dtype=np.float32)})
    return executor.get_output(0).numpy()


WINOGRAD = "nn.contrib_conv2d_winograd_without_weight_transform"


@pytest.mark.parametrize(
    "before",
    [
        three_by_three,
        lambda: three_by_three((1, 8, 8, 256), 256),  # in tiles of two pixels
        lambda: three_by_three((2, 20, 12, 48), padding=(0, 1, 2, 1)),
    ],
)
def test_convolutions_with_many_products_are_computed_as_winograd_did(before: Any) -> None:
    module = before()
    assert operators_of(with_winograd(module)).count(WINOGRAD) == 1

    np.testing.assert_allclose(outputs_by_ansor(module), outputs_of(module)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "before",
    [
        lambda: three_by_three(strides=(2, 2)),
        lambda: three_by_three(dilation=(2, 2)),
        lambda: three_by_three(groups=2),
        lambda: three_by_three((1, 14, 14, 8), 8),
        lambda: three_by_three((1, 2, 2, 64)),
    ],
)
def test_other_convolutions_stay(before: Any) -> None:
    assert operators_of(with_winograd(before())) == ["nn.conv2d", "nn.relu"]
