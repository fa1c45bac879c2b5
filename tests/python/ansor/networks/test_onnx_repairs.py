"""Clips of ONNX with one bound give what ONNX Runtime gives; what would not is refused by a tuning."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.targets import quiet_builds
from tlp_tvm.ansor.networks.network_files import load_network_file
from tlp_tvm.errors import NetworkError, TuningError
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_settings import TuneSettings


def clip(folder: Path, low: int | None, high: int | None, kind: Any = np.float32) -> Path:
    """A model of one clip, of (4, 6) numbers."""
    bounds = {"low": low, "high": high}
    names = ["x", *(name if value is not None else "" for name, value in bounds.items())]
    values = [
        numpy_helper.from_array(np.array(value, kind), name)
        for name, value in bounds.items()
        if value is not None
    ]
    of = {np.float32: TensorProto.FLOAT, np.int64: TensorProto.INT64}[kind]
    ends = [helper.make_tensor_value_info(name, of, [4, 6]) for name in "xy"]
    node = helper.make_node("Clip", names if names[-1] else names[:-1], ["y"])
    graph = helper.make_graph([node], "graph", ends[:1], ends[1:], values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "clip.onnx")
    return folder / "clip.onnx"


@pytest.mark.parametrize("kind", [np.float32, np.int64])
@pytest.mark.parametrize(("low", "high"), [(None, 3), (-2, None), (-2, 3)])
def test_a_clip_has_the_bounds_that_it_has(
    tmp_path: Path, low: int | None, high: int | None, kind: Any
) -> None:
    tvm = load_tvm()
    from tvm.contrib import graph_executor

    file = clip(tmp_path, low, high, kind)
    x = (np.random.default_rng(0).standard_normal((4, 6)) * 9).astype(kind)

    module, parameters, _ = load_network_file(str(file))
    with quiet_builds():
        library = tvm.relay.build(module, target="llvm", params=parameters)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.set_input("x", x)
    executor.run()

    [expected] = onnxruntime.InferenceSession(str(file)).run(None, {"x": x})
    np.testing.assert_array_equal(executor.get_output(0).numpy(), expected)


def test_a_model_that_tvm_gets_wrong_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tlp_tvm.ansor.networks.network_files.repair", lambda model: None)
    file = clip(tmp_path, None, 0)

    with pytest.raises(NetworkError) as refused:
        tune_network(TuneSettings(str(file), tmp_path / "run", measure=MeasureSettings(threads=1)))

    assert re.fullmatch(
        re.escape(f"{file}: expected TVM to give the outputs that ONNX Runtime gives, found a difference of ")
        + r"\S+ of the largest value; please report the network, and tune its TorchScript file",
        str(refused.value),
    )


def test_what_tvm_has_no_schedule_for_is_refused_by_its_words(tmp_path: Path) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 5, 5])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = numpy_helper.from_array(np.ones((2, 3, 3, 3), np.float32), "w")
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], dilations=[2, 2])
    graph = helper.make_graph([node], "graph", [x], [y], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")

    with pytest.raises(
        TuningError, match="expected a network that TVM can compile for llvm, found: not support"
    ):
        tune_network(
            TuneSettings(str(tmp_path / "net.onnx"), tmp_path / "run", measure=MeasureSettings(threads=1))
        )
