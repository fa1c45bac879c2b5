"""The list of passes: what it does to small networks as files have them, and that they compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from relay_networks import constant, linear, module_of, operators_of, outputs_of

from tlp_tvm.ansor.graph.pipeline import ALL, AS_BEFORE, PASSES, left_out_of, prepare
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.targets import quiet_builds
from tlp_tvm.ansor.networks.builtin import load_network


def cpu() -> Any:
    return load_tvm().target.Target("llvm -num-cores=1")


def convolutional(groups: int = 1) -> Any:
    """Convolution, batch norm, activation and pooling, channels first."""
    relay = load_tvm().relay
    x = relay.var("x", shape=(1, 8, 12, 12))
    convolved = relay.nn.conv2d(x, constant(16, 8 // groups, 3, 3), padding=(1, 1), groups=groups)
    vectors = [relay.const(np.linspace(0.5, 1.5, 16, dtype=np.float32) + i) for i in range(4)]
    normal = relay.nn.batch_norm(convolved, *vectors)[0]
    return module_of(relay.nn.max_pool2d(relay.nn.relu(normal), pool_size=(2, 2), strides=(2, 2)))


def test_a_convolution_has_channels_last_and_its_batch_norm_in_its_weights() -> None:
    before = convolutional()
    after = prepare(before, {}, cpu())

    names = operators_of(after.module)
    assert names.count("multiply") == 0
    assert names[0] == names[-1] == "layout_transform"
    assert {"inference", "channels last", "folded scales"} <= set(after.passes)
    np.testing.assert_allclose(outputs_of(after.module)[0], outputs_of(before)[0], rtol=1e-4, atol=1e-5)


def test_convolutions_in_groups_have_channels_last_by_a_pass_of_their_own() -> None:
    before = convolutional(groups=2)
    after = prepare(before, {}, cpu())
    without = prepare(before, {}, cpu(), ["channels last in groups"])

    assert "channels last in groups" in after.passes
    assert "channels last" not in after.passes
    assert [operators_of(after.module)[place] for place in (0, -1)] == ["layout_transform"] * 2
    np.testing.assert_allclose(outputs_of(after.module)[0], outputs_of(before)[0], rtol=1e-4, atol=1e-5)
    assert "layout_transform" not in operators_of(without.module)


def test_a_tvm_without_groups_that_have_channels_last_keeps_them_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(load_tvm().topi.nn, "group_conv2d_nhwc")

    assert "channels last in groups" not in prepare(convolutional(groups=2), {}, cpu()).passes


def test_tasks_of_records_from_before_are_found_without_the_latest_passes() -> None:
    latest = ("transforms by hand",)
    winograd = (*latest, "winograd")
    before = (
        *("sums for prelus", "no zeros between"),
        *("channels last in groups", "channels last in volumes"),
    )
    assert AS_BEFORE[:3] == (latest, winograd, winograd + before)
    for missing in AS_BEFORE[:3]:
        known = [name for name in ALL if name not in missing]
        assert set(left_out_of({"graph": {"left_out": [], "known": known}})) == set(missing)


def test_layers_of_one_input_are_one_product() -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(1, 8, 16))
    q, k, v = (linear(x, 1, 16, 16, seed) for seed in (1, 2, 3))
    before = module_of(relay.add(relay.nn.batch_matmul(q, k), relay.sum(v, axis=-1, keepdims=True)))
    after = prepare(before, {}, cpu())

    assert operators_of(after.module).count("nn.dense") == 1
    assert "one product" in after.passes
    np.testing.assert_allclose(outputs_of(after.module)[0], outputs_of(before)[0], rtol=1e-4, atol=1e-5)


def test_activations_are_polynomials_within_the_bound() -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(64, 64))
    before = module_of(relay.Tuple([relay.erf(x), relay.tanh(x), relay.exp(x), relay.nn.softmax(x)]))
    after = prepare(before, {}, cpu())

    assert "fast math" in after.passes
    for ours, exact in zip(outputs_of(after.module), outputs_of(before), strict=True):
        assert np.abs(ours - exact).max() <= 1e-4 * np.abs(exact).max()


def test_passes_can_be_left_out_and_those_without_effect_are_not_named() -> None:
    relay = load_tvm().relay
    network = module_of(relay.erf(relay.var("x", shape=(4, 4))))

    assert prepare(network, {}, cpu()).passes == ("fast math",)
    assert prepare(network, {}, cpu(), [each.name for each in PASSES]).passes == ()


def test_passes_for_cpus_alone_leave_a_gpus_network() -> None:
    gpu = load_tvm().target.Target("cuda -arch=sm_80")

    assert "channels last" not in prepare(convolutional(), {}, gpu).passes


def test_a_convolution_pads_by_itself() -> None:
    relay = load_tvm().relay
    x = relay.var("x", shape=(1, 8, 12, 12))
    padded = relay.nn.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1)))
    before = module_of(relay.nn.conv2d(padded, constant(8, 1, 3, 3), strides=(2, 2), groups=8, channels=8))
    after = prepare(before, {}, cpu())

    assert "nn.pad" not in operators_of(after.module)
    assert "folded padding" in after.passes
    np.testing.assert_allclose(outputs_of(after.module)[0], outputs_of(before)[0], rtol=1e-4, atol=1e-5)


def test_a_pass_that_an_older_tvm_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    transform = load_tvm().relay.transform
    monkeypatch.delattr(transform, "FoldExplicitPadding")

    assert "channels last" in prepare(convolutional(), {}, cpu()).passes


@pytest.mark.parametrize("network", ["resnet_18-64", "mobilenet-64", "bert_tiny-16"])
def test_what_a_build_leaves_out_would_change_nothing(network: str) -> None:
    tvm = load_tvm()
    prepared = prepare(*load_network(network)[:2], cpu())
    config = {"relay.backend.use_auto_scheduler": True}
    found = []
    for left_out in ((), prepared.needless):
        with (
            prepared.operators(),
            quiet_builds(),
            tvm.transform.PassContext(opt_level=3, config=config, disabled_pass=list(left_out)),
        ):
            found.append(tvm.relay.optimize(prepared.module, target=cpu())[0])

    assert prepared.needless
    assert tvm.ir.structural_equal(*found)


def test_a_build_leaves_nothing_out_of_what_was_not_prepared() -> None:
    network = convolutional()

    assert not prepare(network, {}, cpu(), ["tidy"]).needless
    assert not prepare(network, {}, cpu(), ALL).needless
    assert not prepare(network, {}, load_tvm().target.Target("cuda -arch=sm_80")).needless


def test_a_resumed_run_gets_the_passes_that_it_began_with() -> None:
    now = prepare(convolutional(), {}, cpu(), ["fast math"]).to_dict()

    assert left_out_of({}) == ()
    assert left_out_of({"graph": now}) == ("fast math",)
    assert left_out_of({"graph": {**now, "known": ["inference", "fast math"]}}) == tuple(ALL[1:])
    del now["known"]
    assert left_out_of({"graph": now}) == (
        "folded padding",
        "cut windows",
        "sums for prelus",
        "no zeros between",
        "channels last in groups",
        "channels last in volumes",
        "means by rows",
        "kept gates",
        "winograd",
        "transforms by hand",
        "products for powers",
        "tanh for sigmoids",
        "fast math",
    )
    assert left_out_of({"format": "without"}) == ALL
