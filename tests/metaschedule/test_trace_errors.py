"""What is no program is refused in one sentence: where, expected, found, cure."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from sampled import programs
from tlp_tvm import _core
from tlp_tvm.errors import LayoutError, RecordError, StateError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.workloads import workload
from tlp_tvm.metaschedule.reading import traces
from tlp_tvm.metaschedule.reading.traces import extract_traces

LAYOUT = FeatureLayout.preset("metaschedule")
UNDECIDED = (
    "expected a decision, found none: a trace without decisions is no program yet, apply it to a schedule"
)
STRANGER = "expected a random variable of an instruction before, found "
LOOPS = "instruction 3 (GetLoops): "
TILE = "instruction 4 (SamplePerfectTile): "
SPLIT = "instruction 5 (Split): "


def refusal(items: Any) -> str:
    with pytest.raises(StateError) as error:
        extract_traces(items, LAYOUT)
    return str(error.value)


def test_other_objects_are_refused() -> None:
    good = programs("matmul", "llvm")[0]
    kinds = "expected a Trace, a Schedule or a MeasureCandidate of tvm.s_tir"
    assert refusal([good, "no"]) == f"trace 1: {kinds}, found str"
    assert refusal([good, workload("matmul")]) == f"trace 1: {kinds}, found tirx.PrimFunc"
    from tvm_ffi import Array

    assert refusal(Array([good, 3])) == f"trace 1: {kinds}, found 3"


def test_a_handle_that_is_no_array_is_refused() -> None:
    reader = traces.reader()
    with pytest.raises(StateError, match="^traces: expected an Array of traces, found a null handle$"):
        reader.count(0)
    with pytest.raises(StateError, match="^traces: expected an Array of traces, found tirx.PrimFunc$"):
        reader.count(workload("matmul").__chandle__())


def test_a_trace_without_decisions_is_no_program_yet() -> None:
    trace = programs("matmul", "llvm")[0].trace
    undecided = load_tvm().s_tir.Trace(trace.insts, {})
    assert refusal([undecided]) == f"trace 0: {TILE}{UNDECIDED}"


def test_a_decision_where_none_belongs_is_refused() -> None:
    trace = programs("matmul", "llvm")[0].trace
    decisions = dict(trace.decisions.items()) | {trace.insts[0]: 1}
    odd = load_tvm().s_tir.Trace(trace.insts, decisions)
    assert refusal([odd]) == "trace 0: expected decisions of sampling instructions only, found 1 of others"


def test_decisions_that_do_not_fit_are_refused() -> None:
    trace = programs("matmul", "llvm")[0].trace
    tile = next(inst for inst in trace.insts if inst.kind.name == "SamplePerfectTile")
    for decision, sentence in (
        ([2, 2], "expected a decision for each of 4 outputs, found 2"),
        (3, "expected the decision to be a list, found 3"),
    ):
        odd = load_tvm().s_tir.Trace(trace.insts, dict(trace.decisions.items()) | {tile: decision})
        assert refusal([odd]) == f"trace 0: instruction 4 (SamplePerfectTile): {sentence}"


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ([], "expected candidates to be a list, found nothing more"),
        ([5], "expected candidates to be a list, found 5"),
        ([["x"], [1.0]], 'expected candidates to be numbers, found "x"'),
        ([[], []], "expected the decision to be one of 0 candidates, found 0"),
    ],
)
def test_a_choice_that_the_layout_leaves_out_needs_its_candidates(
    attributes: list[Any], sentence: str
) -> None:
    """Its decision was looked up where there was no list to look in."""
    tvm = load_tvm()
    kind = tvm.s_tir.schedule.InstructionKind.get("SampleCategorical")
    choice = tvm.s_tir.schedule.Instruction(kind, [], attributes, [tvm.tirx.Var("v", "int32")])
    assert refusal([tvm.s_tir.Trace([choice], {choice: 0})]) == (
        f"trace 0: instruction 0 (SampleCategorical): {sentence}"
    )


def test_a_variable_from_nowhere_is_refused() -> None:
    trace = programs("matmul", "llvm")[0].trace
    headless = load_tvm().s_tir.Trace(trace.insts[1:], dict(trace.decisions.items()))
    assert refusal([headless]) == f"trace 0: instruction 1 (Annotate): {STRANGER}another s_tir.SBlockRV"


def test_a_schedule_without_a_trace_is_refused() -> None:
    tvm = load_tvm()
    concrete = tvm.get_global_func("s_tir.schedule.ConcreteSchedule")(
        tvm.IRModule({"main": workload("matmul")}), 1, 0, 0, True
    )
    assert refusal([concrete]) == (
        "trace 0: expected a schedule with a trace, found one without; make it with tvm.s_tir.Schedule"
    )


def test_a_layout_of_another_framework_is_refused() -> None:
    with pytest.raises(LayoutError) as error:
        extract_traces([], FeatureLayout.preset("ansor"))
    assert str(error.value) == (
        'layout "ansor": expected one of metaschedule, found one of ansor; '
        'use FeatureLayout.preset("metaschedule")'
    )


def good() -> list[Any]:
    trace: list[Any] = json.loads(traces.json_of(programs("matmul", "llvm")[0]))
    return trace


def refused(trace: Any) -> str:
    with pytest.raises(RecordError) as error:
        _core.read_traces(json.dumps(trace).encode(), "log.json", 7, "trace", False)
    return str(error.value)


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ((0, 3, 0), "GetLops", 'instruction 3: expected an instruction of TVM 0.25 to 0.27, found "GetLops"'),
        ((0, 3, 1), ["b7"], f'{LOOPS}{STRANGER}"b7"'),
        ((0, 3, 1), ["l0"], f'{LOOPS}{STRANGER}"l0"'),
        ((0, 3, 1), [], f"{LOOPS}expected block to be a random variable, found nothing more"),
        ((0, 3, 1), ["b0", "b0"], f"{LOOPS}expected no further input, found random variable 0"),
        ((0, 3, 3), ["l2", "l4", "l3"], f'{LOOPS}expected output 1 to be l3, found "l4"'),
        ((0, 0, 2), ["C", 5], "instruction 0 (GetSBlock): expected func_name to be a text, found 5"),
        ((0, 5, 2), [2, 0], f"{SPLIT}expected preserve_unit_iters to be 0 or 1, found 2"),
        ((0, 4, 3), [], f"{TILE}expected a decision for each of 0 outputs, found 4"),
        ((1, 0, 0), 400, f"{TILE}{UNDECIDED}"),
        ((1, 0), [4, "x"], f'{TILE}expected the decision to be a list, found "x"'),
    ],
)
def test_every_field_of_a_json_trace_is_checked(place: tuple[int, ...], value: Any, sentence: str) -> None:
    trace = good()
    at = trace
    for index in place[:-1]:
        at = at[index]
    at[place[-1]] = value
    assert refused(trace) == f"log.json:7: {sentence}"


def test_a_bad_line_is_skipped_whole() -> None:
    lines = [json.dumps(good()), "[1", json.dumps(good())[:-30], "", json.dumps(good())]
    text = "\n".join(lines).encode()
    block = _core.read_traces(text, "log.json", 1, "trace", True)
    assert len(block) == 2
    assert [line for line, _, _ in block.skipped] == [2, 3]
    assert block.steps(0) == block.steps(1)


def test_damage_anywhere_is_refused_or_read_and_never_a_crash() -> None:
    text = json.dumps(good())
    read = 0
    for at in range(0, len(text), 3):
        for damage in ("", "9", '"', "]", "l"):
            damaged = text[:at] + damage + text[at + 1 :]
            with contextlib.suppress(RecordError):
                read += len(_core.read_traces(damaged.encode(), "t", 1, "trace", False))
    assert read > 10


def test_records_say_where() -> None:
    record = json.dumps([0, [good(), [1e-3], None, None]])
    assert len(_core.read_traces(record.encode(), "db", 1, "record", False)) == 1
    for old, new, sentence in (
        ("[0, [[", "[-1, [[", "expected the workload to be "),
        ("[0.001]", "[-1.0]", "expected the seconds of a run to be positive, found -1"),
        ("null, null", "3, null", "expected the target to be an object or null, found 3"),
    ):
        with pytest.raises(RecordError, match="^db:1: ") as error:
            _core.read_traces(record.replace(old, new, 1).encode(), "db", 1, "record", False)
        assert sentence in str(error.value)
