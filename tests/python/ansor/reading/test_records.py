"""Logs as they are: every spelling and every old form of a record is read."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logs import STEPS, WriteLog
from tlp_tvm.ansor.reading.records import steps_of_record
from tlp_tvm.errors import RecordError
from tlp_tvm.features import extract_records
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.records.detect import read_records


def test_every_member_of_a_record_is_read(record: dict[str, Any], write_log: WriteLog) -> None:
    batch = read_records(write_log([record]))

    assert batch.steps(0) == STEPS
    assert batch.latencies.tolist() == [0.375]
    assert batch.cost_values.tolist() == [0.25, 0.5]
    assert batch.cost_offsets.tolist() == [0, 2]
    assert batch.errors.tolist() == [0]
    assert batch.elapsed.tolist() == [1.5]
    assert batch.timestamps.tolist() == [1700000000]
    assert batch.lengths.tolist() == [14]
    task = batch.tasks[batch.task_ids[0]]
    assert task.workload_key == '["k", [4, 4]]'
    assert task.target == "llvm -mcpu=core-avx2"
    assert task.hardware == (2, 64, 64, 0, 0, 0, 0, 0)
    assert task.target_host == ""


@pytest.mark.parametrize("members", [2, 3, 4, 5, 6])
def test_tasks_of_old_versions_have_fewer_members(
    record: dict[str, Any], write_log: WriteLog, members: int
) -> None:
    record["i"][0] = record["i"][0][:members]

    task = read_records(write_log([record])).tasks[0]

    assert task.target == "llvm -mcpu=core-avx2"
    assert task.hardware == ((2, 64, 64, 0, 0, 0, 0, 0) if members > 2 else None)


def test_a_missing_version_and_further_keys_are_fine(record: dict[str, Any], write_log: WriteLog) -> None:
    without = {key: record[key] for key in "ir"}
    beside = {"x": [{"a": None, "b": [True, -1.5e-3, "é\n"]}], **record}

    batch = read_records(write_log([without, beside]))

    assert [batch.steps(i) for i in range(len(batch))] == [STEPS, STEPS]


def test_integer_costs_are_seconds(record: dict[str, Any], write_log: WriteLog) -> None:
    record["r"] = [[3, 5], 0, 10, 1700000000]
    batch = read_records(write_log([record]))
    assert batch.latencies.tolist() == [4.0]
    assert batch.elapsed.tolist() == [10.0]


@pytest.mark.parametrize(
    "result", [[[1e10], 6, 15, 1], [[10000000000], 4, 15, 1], [[], 2, 15, 1], [[1e10], 0, 1, 1]]
)
def test_a_failed_measurement_has_no_latency(
    record: dict[str, Any], write_log: WriteLog, result: list[Any]
) -> None:
    record["r"] = result
    batch = read_records(write_log([record]))
    assert batch.latencies.tolist() == [math.inf]
    assert batch.errors.tolist() == [result[1]]


def test_blank_lines_and_crlf_count_as_lines_only(record: dict[str, Any], tmp_path: Path) -> None:
    line = json.dumps(record).encode()
    path = tmp_path / "log.json"
    path.write_bytes(b"\r\n" + line + b"\r\n\n \t \n" + line + b"\n\n" + line)

    batch = read_records(path)

    assert batch.line_numbers.tolist() == [2, 5, 7]
    assert not batch.skipped


def test_spaces_stand_anywhere_between_tokens(record: dict[str, Any], write_log: WriteLog) -> None:
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[^\s"\[\]{}:,]+|[\[\]{}:,]', json.dumps(record))
    lines = [space.join(["", *tokens, ""]) for space in (" ", "\t", "\r", " \t\r ")]
    dense = json.dumps(record, separators=(",", ":"))

    batch = read_records(write_log([*lines, dense]))

    assert [batch.steps(i) for i in range(len(batch))] == [STEPS] * 5
    assert len(batch.tasks) == 1


def test_escapes_mean_their_characters(record: dict[str, Any], write_log: WriteLog) -> None:
    key = '["quote \\" slash / back \\\\ é 漢 😀 \b\f\n\r\t \u0000 \u007f"]'
    record["i"][0][0] = key
    plain = json.dumps(record, ensure_ascii=False)
    escaped = json.dumps(record)
    everything = "".join(
        f"\\u{unit:04X}" for unit in np.frombuffer(key.encode("utf-16-le"), np.uint16).tolist()
    )
    spelled = json.dumps(record | {"i": [["KEY", *record["i"][0][1:]], record["i"][1]]})
    spelled = spelled.replace("KEY", everything).replace('"SP"', '"\\u0053P"').replace('"i"', '"\\u0069"')
    slashed = escaped.replace("/", "\\/")

    batch = read_records(write_log([plain, escaped, spelled, slashed]))

    assert [task.workload_key for task in batch.tasks] == [key]
    assert [batch.steps(i) for i in range(4)] == [STEPS] * 4


def test_numbers_reach_to_the_ends_of_64_bits(record: dict[str, Any], write_log: WriteLog) -> None:
    record["i"][1][1] = [["SP", 2**31 - 1, -(2**31), 2**63 - 1, [-(2**63), 0, 10**18], 0]]
    line = json.dumps(record).replace(" 0,", " -0,")
    batch = read_records(write_log([line]))
    assert batch.steps(0) == record["i"][1][1]


def test_a_program_may_have_no_steps(record: dict[str, Any], write_log: WriteLog) -> None:
    record["i"][1][1] = []
    batch = extract_records(write_log([record]), FeatureLayout.preset("ansor"))
    assert batch.lengths.tolist() == [0]
    assert not batch.features.any()


def test_steps_of_record_is_the_programs_record_form(record: dict[str, Any]) -> None:
    assert steps_of_record(json.dumps(record)) == STEPS
    assert steps_of_record(json.dumps(record) + "\r\n") == STEPS
    with pytest.raises(RecordError, match="<record>:1: expected one record, found a blank line"):
        steps_of_record("")
    with pytest.raises(RecordError, match="expected one record, found 2 of them; read_records reads logs"):
        steps_of_record(f"{json.dumps(record)}\n{json.dumps(record)}\n")
