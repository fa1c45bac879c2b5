"""A network is linked from the code of its programs, and gives what it gives where they are compiled anew."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from small_network import FLOAT, network, record_of

from tlp_tvm.ansor.compiling.kept_code import MOST, Code, CodeOf, KeptCode, name_of
from tlp_tvm.ansor.compiling.linking import Linked, linked
from tlp_tvm.ansor.compiling.newer_llvm import (
    bitcode_of,
    compiled_newly,
    compiled_without,
    linked_with,
    newer_llvm,
    unoptimised,
)
from tlp_tvm.ansor.graph.pipeline import prepare
from tlp_tvm.ansor.graph.winograd.tir_script import BY_HAND
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.end_to_end import build_tuned, random_inputs, run_once
from tlp_tvm.ansor.networks.layout_rewrite import keep_layout_where_needed
from tlp_tvm.ansor.networks.tasks import extract_tasks
from tlp_tvm.ansor.search.sampling import sample_states

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


def tensor(name: str, *shape: int, made_of: tuple[Any, ...] = (), kind: str = FLOAT) -> Any:
    return SimpleNamespace(op=SimpleNamespace(name=name, input_tensors=made_of), shape=shape, dtype=kind)


def code(name: str, *shapes: tuple[int, ...]) -> Code:
    return Code(name, b"", tuple((shape, FLOAT) for shape in shapes))


def programs_in(built: Any) -> int:
    """How much LLVM has to compile, but for transforms of Winograd's convolutions: these are no programs."""
    functions = re.findall(r"^define .*?^}", built.get_lib().get_source("ll"), re.DOTALL | re.MULTILINE)
    programs = [each for each in functions if not re.search(rf"{BY_HAND}|_winograd_(entering|given)", each)]
    assert len(programs) < len(functions)
    return sum(map(len, programs))


def test_a_network_of_kept_code_gives_the_same_and_compiles_no_program_again(tmp_path: Path) -> None:
    tvm = load_tvm()
    target, kept = tvm.target.Target(TARGET), KeptCode()
    module = network()
    prepared = prepare(module, {}, target)
    with prepared.operators():
        tasks, plain = keep_layout_where_needed(extract_tasks((prepared.module, {}), TARGET)[0])
        log = tmp_path / "log.json"
        for task in tasks:
            line, compiled = record_of(task, sample_states(task, 16)[0])
            with log.open("a") as records:
                records.write(line)
            assert kept.of(line) is None
            kept.add(compiled)
            assert kept.of(line) == compiled
        keys = {str(task.workload_key) for task in tasks}
        again, _ = build_tuned(prepared, target, log, plain, keys, CodeOf(newer_llvm(tvm)))
        ours, names = build_tuned(prepared, target, log, plain, keys, CodeOf(newer_llvm(tvm), kept))

    assert any("winograd" in str(task.desc) for task in tasks)
    assert programs_in(ours) < programs_in(again) / 2
    assert set(names.values()) >= keys
    inputs = random_inputs(module, {})
    assert np.array_equal(run_once(ours, inputs, target)[0], run_once(again, inputs, target)[0])


def test_arguments_come_from_where_the_network_has_them() -> None:
    """Of a program that subtracts the second of its arguments from the first."""
    tvm = load_tvm()
    te, target = tvm.te, unoptimised(tvm, tvm.target.Target("llvm"))
    a, b = (te.placeholder((3,), name=name) for name in "ab")
    of_two = te.compute((3,), lambda i: a[i] - b[i], name="c")
    built = tvm.build(te.create_schedule(of_two.op), [a, b, of_two], target, name="program")
    program = compiled_newly(tvm, bitcode_of(built))[1]
    x, y, z = (te.placeholder((3,), name=name) for name in "xyz")
    of_three = te.compute((3,), lambda i: x[i] * y[i] * z[i], name="w")
    stub = tvm.build(te.create_schedule(of_three.op), [x, y, z, of_three], target, name="function")

    calls = {"function": Linked(Code("program", program, ()), (2, 0, -1))}
    module, _ = linked_with(tvm, compiled_without(calls, bitcode_of(stub)), calls)
    first, unused, third, result = (
        tvm.nd.array(np.array(each, FLOAT)) for each in ([1, 2, 3], [9, 9, 9], [50, 60, 70], [0, 0, 0])
    )
    module["function"](first, unused, third, result)

    assert result.numpy().tolist() == [49, 58, 67]


def test_only_what_has_the_same_arguments_is_linked() -> None:
    image, weight = tensor("p1", 4, 4), tensor("p0", 4, 2)
    result = tensor("out", 4, 2, made_of=(image, weight))
    program = code("program", (4, 4), (4, 2), (4, 2))

    assert linked(program, [image, weight, result]) == Linked(program, (1, 0, -1))
    assert linked(program, [weight, image, result]) is None
    assert linked(program, [image, tensor("p0", 4, 2, kind="float16"), result]) is None
    assert linked(program, [image, tensor("placeholder", 4, 2), result]) is None


def test_the_code_of_the_fastest_is_kept() -> None:
    kept = KeptCode()
    records = [json.dumps({"i": [["task"], [i]]}) for i in range(MOST + 3)]
    for latency, record in zip([9.0, math.inf, *range(MOST), 8.5], records, strict=True):
        name = name_of(json.loads(record)["i"])
        kept.timed("task", name, 0.0)  # of no code
        kept.add(code(name))
        kept.timed("task", name, float(latency))

    assert [kept.of(record) is not None for record in records] == [False, False, *[True] * MOST, False]
    assert kept.fastest("task") == 0.0
    assert kept.fastest("another") == math.inf
