"""Networks from ONNX and TorchScript compute what they computed where they were exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator

from exported import SHAPE, conv_net, export_onnx, export_scripted, export_traced, image
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.targets import quiet_builds
from tlp_tvm.ansor.networks.builtin import canonical_name, network_from
from tlp_tvm.ansor.networks.network_files import is_network_file, load_network_file, parse_shapes
from tlp_tvm.errors import NetworkError
from tlp_tvm.network_names import split_of


def output_of(path: Path, shapes: dict[str, tuple[int, ...]] | None = None, batch: int = 1) -> Any:
    """What TVM computes for the image, `batch` times side by side."""
    tvm = load_tvm()
    from tvm.contrib import graph_executor

    module, parameters, inputs = network_from(str(path), shapes)
    assert inputs == {"image": (batch, *SHAPE[1:])}
    with quiet_builds(), tvm.transform.PassContext(opt_level=3):
        library = tvm.relay.build(module, target="llvm", params=parameters)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.set_input(image=np.repeat(image(), batch, 0))
    executor.run()
    return executor.get_output(0).numpy()


def refusal(path: Path | str, shapes: dict[str, tuple[int, ...]] | None = None) -> str:
    with pytest.raises(NetworkError) as refused:
        network_from(str(path), shapes)
    return str(refused.value)


def test_onnx_computes_what_onnx_and_torch_compute(tmp_path: Path) -> None:
    path = export_onnx(tmp_path / "net.onnx")
    found = output_of(path)
    [by_onnx] = ReferenceEvaluator(onnx.load(path)).run(None, {"image": image()})
    np.testing.assert_allclose(found, by_onnx, atol=1e-4)
    np.testing.assert_allclose(found, conv_net()(torch.from_numpy(image())).detach(), atol=1e-4)


def test_torchscript_computes_what_torch_computes(tmp_path: Path) -> None:
    found = output_of(export_traced(tmp_path / "net.pt"))
    np.testing.assert_allclose(found, conv_net()(torch.from_numpy(image())).detach(), atol=1e-4)
    for name in ("net.pth", "net.torchscript"):
        assert network_from(str(export_traced(tmp_path / name)))[2] == {"image": SHAPE}


def test_what_a_file_leaves_open_is_said(tmp_path: Path) -> None:
    onnx_file = export_onnx(tmp_path / "net.onnx", open_batch=True)
    torch_file = export_traced(tmp_path / "net.pt", with_shapes=False)

    assert refusal(onnx_file) == (
        f"{onnx_file}: expected inputs of fixed shape, found (?, 3, 8, 8) of image; "
        "choose one, as in `shapes` image=1,3,8,8"
    )
    assert refusal(torch_file) == (
        f"{torch_file}: expected inputs of fixed shape, found any shape of image; "
        "choose one, as in `shapes` image=1,3,224,224"
    )
    expected = conv_net()(torch.from_numpy(np.repeat(image(), 3, 0))).detach()
    for path in (onnx_file, torch_file):
        found = output_of(path, {"image": (3, 3, 8, 8)}, batch=3)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_shape_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = export_onnx(tmp_path / "net.onnx", open_batch=True)
    assert refusal(path, {"image": (1, 3, 9, 9)}) == (
        f"{path}: expected `shapes` image to be (?, 3, 8, 8), as in the file, found (1, 3, 9, 9); "
        "choose one that fits, or export the network with that shape"
    )
    assert refusal(path, {"x": (1,)}) == (
        f'{path}: expected `shapes` of one of the inputs image: (?, 3, 8, 8), found one of "x"; name another'
    )
    assert refusal("mlp", {"x": (1,)}).startswith("mlp: expected no `shapes` for a built-in network, found")


def test_no_file_and_no_network_are_told_apart(tmp_path: Path) -> None:
    missing = tmp_path / "no.onnx"
    assert refusal(missing).startswith(f"{missing}: expected a file with a network, found none; choose an ")
    (tmp_path / "folder.pt").mkdir()
    assert " found a folder; " in refusal(tmp_path / "folder.pt")
    for name in ("text.onnx", "empty.onnx", "text.pt"):
        (tmp_path / name).write_bytes(b"" if name.startswith("empty") else b"hello, this is no network")
    assert refusal(tmp_path / "text.onnx").startswith(
        f"{tmp_path}/text.onnx: expected an ONNX model, found: "
    )
    assert refusal(tmp_path / "empty.onnx").endswith(
        "expected an ONNX model, found no operator in it; export the network again"
    )
    torch.save(conv_net().state_dict(), tmp_path / "weights.pth")
    for name in ("text.pt", "weights.pth"):
        message = refusal(tmp_path / name)
        assert message.startswith(f"{tmp_path}/{name}: expected TorchScript, found: ")
        assert message.endswith("; write it with torch.jit.trace(network, inputs).save(path)")
        assert "\n" not in message


def test_operators_that_tvm_lacks_are_named(tmp_path: Path) -> None:
    of_ours = onnx.helper.make_node("Peculiar", ["x"], ["y"])
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 3]) for name in "xy"]
    graph = onnx.helper.make_graph([of_ours], "graph", values[:1], values[1:])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "net.onnx")
    scripted = export_scripted(tmp_path / "net.pt")

    for path, words in ((tmp_path / "net.onnx", "Peculiar"), (scripted, "aten::")):
        message = refusal(path, {"image": SHAPE} if path is scripted else None)
        assert message.startswith(f"{path}: expected a network of operators that TVM can import, found: ")
        assert words in message
        assert message.endswith("; export it without these, traced for inference")
        assert "\n" not in message


def test_shapes_that_depend_on_values_are_refused(tmp_path: Path) -> None:
    node = onnx.helper.make_node("NonZero", ["x"], ["y"])
    given = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [1, None])
    graph = onnx.helper.make_graph([node], "graph", [given], [result])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "net.onnx")

    message = refusal(tmp_path / "net.onnx")

    assert "expected shapes that are known before the network runs, found a result of " in message
    assert message.endswith("; export the network with fixed shapes")


def test_without_the_package_onnx_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = export_onnx(tmp_path / "net.onnx")
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    assert refusal(path).endswith("expected the package onnx to read it, found none; install tlp-tvm[onnx]")


def test_files_have_names_and_are_for_training() -> None:
    assert canonical_name("some/folder/My-Net.onnx") == "My-Net"
    assert split_of("some/folder/My-Net.onnx") == split_of("My-Net") == "train"
    assert split_of("resnet_50-224") == "test"
    assert is_network_file("a.PT")
    assert not is_network_file("resnet_18-224")
    with pytest.raises(NetworkError, match="^mlp: expected a file with a network, found none"):
        load_network_file("mlp")


def test_shapes_are_read_as_typed() -> None:
    assert parse_shapes(["x=1,3,224,224", "a=b=7"]) == {"x": (1, 3, 224, 224), "a=b": (7,)}
    for text in ("x", "x=", "=1,2", "x=1,a", "x=0,3"):
        with pytest.raises(NetworkError) as refused:
            parse_shapes([text])
        assert str(refused.value) == (
            f'`shapes` "{text}": expected the name of an input and positive extents, as in x=1,3,224,224'
        )
