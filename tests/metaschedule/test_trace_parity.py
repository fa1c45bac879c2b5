"""What is read natively of every sampled trace equals the slow reading and the database, and goes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sampled import programs
from tlp_tvm import _core
from tlp_tvm.embedding import EncodingReport
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.benching.trace_route import steps_of
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.workloads import TARGETS, WORKLOADS, workload
from tlp_tvm.metaschedule.reading import traces
from tlp_tvm.metaschedule.reading.records import read_tuning_records
from tlp_tvm.metaschedule.reading.traces import extract_traces

LAYOUT = FeatureLayout.preset("metaschedule")

every = pytest.mark.parametrize(
    ("name", "target"), [(name, target) for target in TARGETS for name in WORKLOADS]
)


def as_numbers(value: Any) -> Any:
    """JSON of `as_json`, in which TVM leaves numbers as objects of its own."""
    if isinstance(value, list):
        return [as_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: as_numbers(item) for key, item in value.items()}
    if type(value).__name__ in ("IntImm", "FloatImm"):
        return value.value
    return value


def candidates(name: str, target: str, count: int) -> Any:
    """What TVM's search hands to a cost model: postprocessors have run."""
    tvm = load_tvm()
    from tvm.s_tir import meta_schedule as ms

    context = ms.TuneContext(
        mod=workload(name),
        target=tvm.target.Target(TARGETS[target]),
        space_generator="post-order-apply",
        search_strategy=ms.search_strategy.ReplayTrace(max_fail_count=20),
        rand_state=3,
        num_threads=1,
    )
    strategy = context.search_strategy
    strategy.pre_tuning(count, count, context.generate_design_space())
    return strategy.generate_measure_candidates()


@pytest.mark.parametrize(("count", "least", "most"), [(1, 3, 4), (2, 6, 16), (20, 65, 256)])
def test_decisions_are_found_whatever_their_order(count: int, least: int, most: int) -> None:
    """Of one program, and of several in one trace: in a small Map, in one block, in many."""
    parts = [schedule.trace for schedule in programs("matmul", "llvm")[:count]]
    instructions = [instruction for trace in parts for instruction in trace.insts]
    decisions = [pair for trace in parts for pair in trace.decisions.items()]
    assert least <= len(decisions) <= most
    orders = [decisions, decisions[::-1], decisions[2:] + decisions[:2]]
    joined = [load_tvm().s_tir.Trace(instructions, dict(order)) for order in orders]
    assert traces.steps(joined) == [steps_of(trace) for trace in joined]


@every
def test_every_sampled_trace_reads_as_its_json_says(name: str, target: str) -> None:
    sampled = programs(name, target)
    native = traces.steps(sampled)
    assert native == [steps_of(program.trace) for program in sampled]
    assert len({str(program) for program in native}) > 3


@every
def test_both_routes_give_the_same_embeddings(name: str, target: str) -> None:
    report = EncodingReport()
    native = extract_traces(programs(name, target), LAYOUT, report=report)
    np.testing.assert_array_equal(native, extract_traces(programs(name, target), LAYOUT, route="json"))
    assert native.any(axis=(1, 2)).all()
    assert np.abs(native).max() < 3
    assert (report.cut_rows, report.unknown_kinds, report.unknown_tokens) == (0, {}, {})


@every
def test_the_sequence_goes_back_into_tvm(name: str, target: str) -> None:
    tvm = load_tvm()
    program = programs(name, target)[-1]
    array = traces.as_array([program])
    [text] = traces.reader().json(array.__chandle__())
    assert json.loads(text) == json.loads(json.dumps(as_numbers(program.trace.as_json())))
    again = tvm.s_tir.Schedule(tvm.IRModule({"main": workload(name)}))
    tvm.s_tir.Trace.apply_json_to_schedule(json.loads(text), again)
    tvm.ir.assert_structural_equal(again.mod, program.mod)


@pytest.mark.parametrize(
    ("name", "target"), [("matmul", "llvm"), ("conv2d_bias_bn_relu", "llvm"), ("softmax", "cuda")]
)
def test_candidates_of_the_search_read_as_their_records(name: str, target: str, tmp_path: Path) -> None:
    tvm = load_tvm()
    from tvm.s_tir import meta_schedule as ms

    found = candidates(name, target, 8)
    native = traces.steps(found)
    assert any(step[0] == "EnterPostproc" for step in native[0])
    assert native == [steps_of(candidate.sch.trace) for candidate in found]

    database = ms.database.JSONDatabase(work_dir=str(tmp_path))
    mod = tvm.IRModule({"main": workload(name)})
    entry = database.commit_workload(mod)
    arguments = ms.arg_info.ArgInfo.from_entry_func(mod, False)
    for i, candidate in enumerate(found):
        record = ms.database.TuningRecord(
            candidate.sch.trace,
            entry,
            [1e10 if i == 0 else i * 1e-3],
            tvm.target.Target(TARGETS[target]),
            arguments,
        )
        database.commit_tuning_record(record)
    records = read_tuning_records(tmp_path)
    assert [records.steps(i) for i in range(len(records))] == native
    assert np.isinf(records.latencies[0])
    np.testing.assert_allclose(records.latencies[1:], np.arange(1, len(found)) * 1e-3)
    assert records.tasks[0].target.split()[0] == target
    np.testing.assert_array_equal(records.encode(LAYOUT), extract_traces(found, LAYOUT))


def test_what_no_design_space_makes_keeps_everything_too() -> None:
    tvm = load_tvm()
    program = tvm.s_tir.Schedule(workload("matmul"))
    block = program.get_sblock("C", "main")
    i, j, k = program.get_loops(block)
    program.split(i, [None, 8])
    chosen = program.sample_categorical([4, 8], [0.25, 0.75], decision=1)
    program.split(j, [None, chosen])
    for key, value in {
        "real": 1.5,
        "whole": 2.0,
        "flag": True,
        "mapping": {"b": 1, "a": [1, "x"]},
        "texts": ["a", "b"],
        "text": 'say "hi"\n',
    }.items():
        program.annotate(block, key, value)
    cached = program.cache_read(block, 0, "shared")
    program.transform_layout(block, ("write", 0), lambda a, b: (b, a))
    program.storage_align(cached, 0, 0, 8, 4)
    program.blockize(k)
    program.enter_postproc()

    [native] = traces.steps([program])

    assert native == steps_of(program.trace)
    block_of = _core.read_traces(traces.json_of(program).encode(), "<t>", 1, "trace", False)
    assert block_of.steps(0) == native
    again = tvm.s_tir.Schedule(workload("matmul"))
    tvm.s_tir.Trace.apply_json_to_schedule(json.loads(block_of.json(0)), again)
    # As in TVM's own databases, true comes back as 1, and 2.0 as 2.
    assert traces.steps([again]) == [native]


@pytest.mark.parametrize("threads", [1, 4, 7])
def test_threads_do_not_matter(threads: int) -> None:
    sampled = [*programs("conv2d", "cuda"), *programs("softmax", "llvm")] * 5
    expected = extract_traces(sampled, LAYOUT, threads=1)
    np.testing.assert_array_equal(extract_traces(sampled, LAYOUT, threads=threads), expected)


def test_the_postprocessed_part_is_not_shown() -> None:
    with_postproc = programs("matmul", "llvm")[0].copy()
    before = extract_traces([with_postproc], LAYOUT)
    with_postproc.enter_postproc()
    with_postproc.parallel(with_postproc.get_loops(with_postproc.get_sblock("C", "main"))[0])
    np.testing.assert_array_equal(extract_traces([with_postproc], LAYOUT), before)


def test_no_traces_get_no_embeddings() -> None:
    assert extract_traces([], LAYOUT).shape == (0, LAYOUT.length, LAYOUT.width)
    assert traces.steps([]) == []
