"""What is left out when programs are compiled, or done to their addresses, makes them no others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tlp_tvm.ansor.compiling import pass_settings
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring import work
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.measuring.code_kinds import FOLDED, PLAIN

TARGET = "llvm -num-cores=1"


def output_of(program: work.Serialized) -> NDArray[np.float32]:
    """Of a serialized program, on the same random numbers every time."""
    compiled, _, message = work.compiled(program)
    assert compiled is not None, message
    generator = np.random.default_rng(0)
    shapes = [[int(extent) for extent in tensor.shape] for tensor in compiled.tensors]
    arrays = [load_tvm().nd.array(generator.standard_normal(shape).astype("float32")) for shape in shapes]
    compiled.module(*arrays)
    return np.asarray(arrays[-1].numpy())


def programs_of(name: str, addresses: str) -> list[work.Serialized]:
    """Three programs of an operator."""
    task = operator_task(name, TARGET)
    inputs = [load_tvm().auto_scheduler.MeasureInput(task, state) for state in sample_states(task, 16)[:3]]
    return [work.Serialized(each.serialize(), addresses) for each in inputs]


@pytest.mark.parametrize("name", ["conv2d", "depthwise_conv2d", "softmax"])
def test_programs_compute_the_same_without_a_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = programs_of(name, PLAIN)
    without = [output_of(program) for program in programs]
    monkeypatch.setattr(pass_settings, "LEFT_OUT", [])
    for program, found in zip(programs, without, strict=True):
        np.testing.assert_allclose(found, output_of(program), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["conv2d", "depthwise_conv2d", "softmax", "reduction"])
def test_programs_compute_the_same_however_their_addresses_are(name: str) -> None:
    for folded, plain in zip(programs_of(name, FOLDED), programs_of(name, PLAIN), strict=True):
        np.testing.assert_allclose(output_of(folded), output_of(plain), rtol=1e-5, atol=1e-5)


def test_a_gpu_and_a_plain_program_keep_their_addresses() -> None:
    ours, tvm = "tir.add_lower_pass", load_tvm()

    assert ours in pass_settings.of_a_program(tvm, tvm.target.Target("llvm"), FOLDED)["config"]
    assert ours not in pass_settings.of_a_program(tvm, tvm.target.Target("llvm"), PLAIN)["config"]
    assert ours not in pass_settings.of_a_program(tvm, tvm.target.Target("cuda"), FOLDED)["config"]
    assert ours in pass_settings.of_a_network(tvm, tvm.target.Target("llvm"), (), FOLDED)["config"]
    assert ours not in pass_settings.of_a_network(tvm, tvm.target.Target("llvm"), (), PLAIN)["config"]
    assert ours not in pass_settings.of_a_network(tvm, tvm.target.Target("cuda"), (), FOLDED)["config"]


def test_a_network_is_compiled_as_its_programs_were_when_they_were_timed() -> None:
    tvm = load_tvm()
    program = pass_settings.of_a_program(tvm, tvm.target.Target("llvm"), FOLDED)
    network = pass_settings.of_a_network(tvm, tvm.target.Target("llvm"), ("InferType",), FOLDED)

    assert program["config"].keys() <= network["config"].keys()
    assert program["config"]["tir.disable_cse_tir"]
    assert network["config"]["tir.disable_cse_tir"]
    assert set(program["disabled_pass"]) <= set(network["disabled_pass"])
