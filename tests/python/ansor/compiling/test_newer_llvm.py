"""Programs and networks compiled by a newer LLVM than TVM's: the same results, and used as TVM's are."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_pass_settings import output_of, programs_of

from tlp_tvm.ansor.compiling import newer_llvm as newer
from tlp_tvm.ansor.compiling import newer_network, pass_settings
from tlp_tvm.ansor.compiling.newer_llvm import bitcode_of, compiled_newly, is_newer, newer_llvm, unoptimised
from tlp_tvm.ansor.compiling.newer_network import NewerNetwork, is_compiled
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring import work
from tlp_tvm.ansor.networks.builtin import load_network
from tlp_tvm.ansor.networks.end_to_end import random_inputs
from tlp_tvm.ansor.networks.profile import profile
from tlp_tvm.measuring.child import COMPILE
from tlp_tvm.measuring.code_kinds import FOLDED, PLAIN

TARGET = "llvm -num-cores=1"


def test_there_is_one_with_a_name() -> None:
    assert newer_llvm(load_tvm()).startswith("llvm-")
    assert is_newer(newer_llvm(load_tvm()))
    assert not is_newer(FOLDED)
    assert not is_newer(PLAIN)


@pytest.mark.parametrize("name", ["conv2d", "depthwise_conv2d", "batch_matmul", "softmax", "reduction"])
def test_programs_compute_the_same(name: str) -> None:
    for ours, tvms in zip(programs_of(name, newer_llvm(load_tvm())), programs_of(name, FOLDED), strict=True):
        np.testing.assert_allclose(output_of(ours), output_of(tvms), rtol=1e-5, atol=1e-5)


def test_it_gets_addresses_as_tvm_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def of_a_program(tvm: Any, target: Any, code: str) -> dict[str, Any]:
        asked.append(code)
        return pass_settings.of_a_program(tvm, target, code)

    monkeypatch.setattr(work, "of_a_program", of_a_program)
    codes = [newer_llvm(load_tvm()), FOLDED, PLAIN]
    for code in codes:
        work.compiled(programs_of("reduction", code)[0])

    assert asked == codes


def test_a_child_has_the_function_that_it_times() -> None:
    program, _, message = work.compiled(programs_of("batch_matmul", newer_llvm(load_tvm()))[0])

    assert program is not None, message
    assert program.module.type_key == "library"
    device = load_tvm().cpu()
    arrays = [
        load_tvm().nd.array(np.ones([int(each) for each in t.shape], "float32")) for t in program.tensors
    ]
    timer = program.module.time_evaluator(program.module.entry_name, device, number=1)
    assert timer(*arrays).mean > 0


def test_what_does_not_link_is_one_program_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newer, "_object_of", lambda bitcode: b"no object")

    program, error, message = work.compiled(programs_of("batch_matmul", newer_llvm(load_tvm()))[0])

    assert program is None
    assert error == COMPILE
    assert "expected functions that ld links, found: " in message


def built_newly(name: str) -> tuple[Any, Any, Any]:
    """A built-in network by a newer LLVM and by TVM's, and its inputs."""
    tvm = load_tvm()
    module, parameters, *_ = load_network(name)
    target = tvm.target.Target(TARGET)
    with tvm.transform.PassContext(opt_level=3):
        ours = tvm.relay.build(module, target=unoptimised(tvm, target), params=parameters)
        tvms = tvm.relay.build(module, target=target, params=parameters)
    return NewerNetwork(tvm, ours), tvms, random_inputs(module, parameters)


def outputs_of(library: Any, inputs: dict[str, Any]) -> Any:
    from tvm.contrib import graph_executor

    executor = graph_executor.GraphModule(library["default"](load_tvm().cpu()))
    executor.set_input(**inputs)
    executor.run()
    return executor.get_output(0).numpy()


def test_a_network_runs_is_profiled_and_is_exported(tmp_path: Path) -> None:
    from tvm.contrib import cc, tar

    ours, tvms, inputs = built_newly("mlp")
    expected = outputs_of(tvms, inputs)
    ours.export_library(str(tmp_path / "net.so"), fcompile=cc.create_shared)
    ours.export_library(str(tmp_path / "net.tar"), fcompile=tar.tar)

    np.testing.assert_allclose(outputs_of(ours, inputs), expected, rtol=1e-5, atol=1e-6)
    for file in ("net.so", "net.tar"):
        loaded = load_tvm().runtime.load_module(str(tmp_path / file))
        np.testing.assert_allclose(outputs_of(loaded, inputs), expected, rtol=1e-5, atol=1e-6)
    [operators] = profile([ours], inputs, load_tvm().target.Target(TARGET), 1)
    assert sum(each.count for each in operators) >= 3
    assert ours.get_lib().type_key == "llvm"


def test_instructions_are_ordered_for_this_processor_and_are_no_others() -> None:
    text = newer._tuned_here('attributes #0 = { nounwind "target-cpu"="core-avx2" }')

    assert '"target-cpu"="core-avx2"' in text
    assert '"tune-cpu"="' in text
    assert text.count('"target-cpu"') == 1


def test_a_library_outlives_its_file() -> None:
    tvm = load_tvm()
    n = tvm.te.var("n")
    a = tvm.te.placeholder((n,), name="a")
    b = tvm.te.compute((n,), lambda i: a[i] + 1.0, name="b")
    built = tvm.build(tvm.te.create_schedule(b.op), [a, b], unoptimised(tvm, tvm.target.Target("llvm")))
    module, code = compiled_newly(tvm, bitcode_of(built))
    found = tvm.nd.array(np.zeros(5, "float32"))

    module["default_function"](tvm.nd.array(np.arange(5, dtype="float32")), found)

    assert found.numpy().tolist() == [1, 2, 3, 4, 5]
    assert code.startswith(b"\x7fELF")


def test_tvms_llvm_is_asked_by_the_thread_that_builds_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def spy(library: Any) -> bytes:
        asked.append(threading.get_ident())
        return bitcode_of(library)

    monkeypatch.setattr(newer_network, "bitcode_of", spy)
    ours, *_ = built_newly("mlp")

    assert is_compiled(ours)
    assert asked == [threading.get_ident()]


def test_a_network_that_does_not_compile_is_known_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newer, "_object_of", lambda bitcode: b"no object")
    ours, tvms, _ = built_newly("mlp")

    assert not is_compiled(ours)
    assert is_compiled(tvms)
    with pytest.raises(RuntimeError, match="expected functions that ld links"):
        _ = ours["default"]


def test_bitcode_of_an_llvm_that_is_newer_still_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tvm = load_tvm()
    monkeypatch.setattr(tvm.target.codegen, "llvm_version_major", lambda: 99)

    assert newer_llvm.__wrapped__(tvm) == ""


def test_no_linker_no_newer_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    assert newer_llvm.__wrapped__(load_tvm()) == ""


def test_a_tvm_that_cannot_leave_functions_unoptimised_compiles_them_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> None:
        raise ValueError("no such attribute: opt-level")

    monkeypatch.setattr(newer, "unoptimised", refuse)

    assert newer_llvm.__wrapped__(load_tvm()) == ""
