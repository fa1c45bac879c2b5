"""Logs as they should not be: every field of a record is damaged in turn, and each refusal read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from logs import STEPS, WriteLog, refusal
from reference import steps as reference
from tlp_tvm._core import kinds_of
from tlp_tvm.records.detect import read_records

Change = Callable[[dict[str, Any]], Any]

FIELD_NAMES = {kind: [name for name, _ in fields] for kind, fields in kinds_of("ansor")}


# Every field in turn.


def wrong_values(field: str) -> list[Any]:
    """Values that a field of that type must not have, each with what the message calls it."""
    texts = [("16", '"16"'), (None, "null"), (True, "true"), ({}, "an object")]
    numbers = [*texts, (1.5, "1.5"), ([1], "a list")]
    return {
        "i": [*numbers, (2**31, "2147483648"), (-(2**31) - 1, "-2147483649")],
        "l": [*numbers, (2**63, "9223372036854775808"), (-(2**63) - 1, "-9223372036854775809")],
        "b": [*numbers, (2, "2"), (-1, "-1")],
        "s": [(16, "16"), *texts[1:], (["local"], "a list")],
        "*": [
            *texts,
            (16, "16"),
            ([1, "2"], '"2"'),
            ([1, None], "null"),
            ([[1]], "a list"),
            ([2**63], str(2**63)),
        ],
    }[field]


EVERY_FIELD = [
    pytest.param(kind, position, id=f"{kind}.{name}")
    for kind, fields in reference.FIELDS.items()
    for position, name in enumerate(FIELD_NAMES[kind])
    if len(fields) == len(FIELD_NAMES[kind])
]


def test_every_field_of_every_kind_is_damaged_below() -> None:
    assert len(EVERY_FIELD) == sum(len(fields) for fields in reference.FIELDS.values())


@pytest.mark.parametrize(("kind", "position"), EVERY_FIELD)
def test_a_step_field_of_another_type_is_refused(
    record: dict[str, Any], write_log: WriteLog, kind: str, position: int
) -> None:
    at = [step[0] for step in STEPS].index(kind)
    good = json.dumps(record)
    for value, found in wrong_values(reference.FIELDS[kind][position]):
        record["i"][1][1][at][1 + position] = value
        message = refusal(write_log([good, record, good]))
        field = f"{kind} {FIELD_NAMES[kind][position]}"
        assert message.startswith(f"log.json:2: step {at}: expected {field} to "), message
        assert message.endswith(f", found {found}"), message


@pytest.mark.parametrize(("kind", "position"), EVERY_FIELD)
def test_a_step_that_ends_before_a_field_is_refused(
    record: dict[str, Any], write_log: WriteLog, kind: str, position: int
) -> None:
    at = [step[0] for step in STEPS].index(kind)
    del record["i"][1][1][at][1 + position :]
    assert refusal(write_log([record])) == (
        f"log.json:1: step {at}: expected {kind} {FIELD_NAMES[kind][position]}, found the list ends before it"
    )


@pytest.mark.parametrize("kind", reference.FIELDS)
def test_a_step_with_one_more_field_is_refused(
    record: dict[str, Any], write_log: WriteLog, kind: str
) -> None:
    at = [step[0] for step in STEPS].index(kind)
    record["i"][1][1][at].append(1)
    assert refusal(write_log([record])) == (
        f"log.json:1: step {at}: expected the step to end, found one more field"
    )


@pytest.mark.parametrize("name", ["XX", "", "sp", "SP ", "\0SP", "FFSPS", "é", "MergedAnnotation"])
def test_an_unknown_step_kind_is_refused(record: dict[str, Any], write_log: WriteLog, name: str) -> None:
    record["i"][1][1][7][0] = name
    message = refusal(write_log([record]))
    assert message.startswith(
        "log.json:1: step 7: expected one of the 14 step kinds of Ansor (AN to RF), found "
    )


def put(*path: int | str, value: Any) -> Change:
    def change(record: dict[str, Any]) -> None:
        for key in path[:-1]:
            record = record[key]
        record[path[-1]] = value

    return change


def drop(*path: int | str) -> Change:
    def change(record: dict[str, Any]) -> None:
        for key in path[:-1]:
            record = record[key]
        del record[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (drop("i"), 'expected "i" (the measured input), found a record without it'),
        (drop("r"), 'expected "r" (the measured result), found a record without it'),
        (put("i", value=3), "expected the input to be a list, found 3"),
        (put("i", 0, value={}), "expected the task to be a list, found an object"),
        (put("i", 0, value=[]), "expected the workload key to be a string, found ]"),
        (put("i", 0, 0, value=7), "expected the workload key to be a string, found 7"),
        (put("i", 0, value=["k"]), "expected the target, found the list ends before it"),
        (put("i", 0, 1, value=None), "expected the target to be a string, found null"),
        (put("i", 0, 2, value=2), "expected the hardware parameters to be a list, found 2"),
        (put("i", 0, 2, 3, value="0"), 'expected a hardware parameter to be an integer, found "0"'),
        (put("i", 0, 2, 3, value=0.5), "expected a hardware parameter to be an integer, found 0.5"),
        (put("i", 0, 3, value=[]), "expected the target host to be a string, found a list"),
        (put("i", 0, 4, value="1"), 'expected the layout rewrite option to be an integer, found "1"'),
        (put("i", 0, 5, value="x"), 'expected the input names to be a list, found "x"'),
        (put("i", 0, 5, value=[1]), "expected an input name to be a string, found 1"),
        (
            put("i", 0, value=["k", "llvm", [], "", 1, [], 0]),
            "expected the task to end, found one more field",
        ),
        (drop("i", 1), "expected the state of the input, found the list ends before it"),
        (put("i", 1, value=None), "expected the state to be a list, found null"),
        (put("i", 1, 0, value="x"), 'expected the state\'s stages to be a list, found "x"'),
        (drop("i", 1, 1), "expected the steps of the state, found the list ends before it"),
        (put("i", 1, 1, value={}), "expected the steps to be a list, found an object"),
        (put("i", 1, 1, 3, value="RE"), 'step 3: expected the step to be a list, found "RE"'),
        (put("i", 1, 1, 3, value=[]), "step 3: expected the step's kind to be a string, found ]"),
        (put("i", 1, 1, 3, 0, value=3), "step 3: expected the step's kind to be a string, found 3"),
        (put("i", 1, value=[[], [], 0]), "expected the state to end, found one more field"),
        (put("i", value=[["k", "llvm"], [[], []], 0]), "expected the input to end, found one more field"),
        (put("r", value="x"), 'expected the result to be a list, found "x"'),
        (put("r", value=[]), "expected the costs to be a list, found ]"),
        (put("r", 0, value=0.5), "expected the costs to be a list, found 0.5"),
        (put("r", 0, 1, value="0.5"), 'expected a cost to be a number, found "0.5"'),
        (put("r", 0, 1, value=None), "expected a cost to be a number, found null"),
        (put("r", 0, 1, value=-0.5), "expected a cost in seconds, found a negative number"),
        (put("r", 0, value=[]), "expected at least one cost, found none and no error"),
        (drop("r", 3), "expected the timestamp, found the list ends before it"),
        (put("r", 1, value=0.5), "expected the error number to be an integer, found 0.5"),
        (put("r", 1, value=2**31), "expected the error number to be between -2147483648 and 2147483647"),
        (put("r", 2, value="1.5"), 'expected the elapsed time to be a number, found "1.5"'),
        (put("r", 3, value=[]), "expected the timestamp to be a number, found a list"),
        (put("r", 3, value=1e300), "expected the timestamp in seconds since 1970, found one beyond reason"),
        (put("r", value=[[1], 0, 1, 1, 1]), "expected the result to end, found one more field"),
    ],
)
def test_every_other_field_is_damaged_in_turn(
    record: dict[str, Any], write_log: WriteLog, change: Change, expected: str
) -> None:
    good = json.dumps(record)
    change(record)
    message = refusal(write_log([good, "", record]))
    assert message.startswith(f"log.json:3: {expected}"), message


# What is no JSON, or too much of it.


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("5", "expected the record to be an object, found 5"),
        ("[]", "expected the record to be an object, found a list"),
        ("null", "expected the record to be an object, found null"),
        ("{}", 'expected "i" (the measured input), found a record without it'),
        ("{1: 2}", "expected the key to be a string, found 1"),
        ('{"x" 5}', "expected ':', found 5"),
        ('{"x": 5 "y": 6}', "expected ',' or '}', found \"y\""),
        ('{"x": 5,}', "expected the key to be a string, found }"),
        ('{"x": [1,]}', "expected a value, found ]"),
        ('{"x": [1 2]}', "expected ',' or ']', found 2"),
        ('{"x": 01}', "expected a value, found 01"),
        ('{"x": +1}', "expected a value, found +1"),
        ('{"x": 1.}', "expected a value, found 1."),
        ('{"x": .5}', "expected a value, found .5"),
        ('{"x": 1e}', "expected a value, found 1e"),
        ('{"x": NaN}', "expected a value, found NaN"),
        ('{"x": Infinity}', "expected a value, found Infinity"),
        ('{"x": -Infinity}', "expected a value, found -Infinity"),
        ('{"x": True}', "expected a value, found True"),
        ("{'x': 1}", "expected the key to be a string, found 'x'"),
        ('{"x": "\\x41"}', "expected an escape of JSON, found"),
        ('{"x": "\\u12G4"}', "expected four hexadecimal digits, found"),
        ('{"x": "a\tb"}', "expected the end of a string, found"),
        ('{"x": "\\ud800"}', "expected a pair of surrogates, found"),
        ('{"x": "\\ud800\\ud800"}', "expected a pair of surrogates, found"),
        ('{"x": "\\udc00"}', "expected a pair of surrogates, found"),
        (b'{"x": "\xff"}', "expected a string in UTF-8, found"),
        (b'{"x": "\xc0\xaf"}', "expected a string in UTF-8, found"),
        (b'{"x": "\xed\xa0\x80"}', "expected a string in UTF-8, found"),
        (b'\xef\xbb\xbf{"x": 1}', "expected the record to be an object, found \\xef"),
        (b'{"x": 1\x00}', "expected ',' or '}', found"),
        (b"\x1f\x8b\x08\x00", "expected the record to be an object, found \\x1f"),
        ('{"x": ' + "[" * 100 + "]" * 100 + "}", "expected nesting of at most 64 levels"),
        ('{"x": ' + "[" * 100_000, "expected nesting of at most 64 levels"),
        ("[" * 100_000, "expected the record to be an object, found a list"),
    ],
)
def test_what_is_not_json_is_refused(write_log: WriteLog, line: str | bytes, expected: str) -> None:
    message = refusal(write_log([line]))
    assert message.startswith(f"log.json:1: {expected}"), message


def test_found_is_short_and_printable(record: dict[str, Any], write_log: WriteLog) -> None:
    record["i"][0] = ["k", "llvm", "\0\x1b[31m" + "x" * 10_000]
    message = refusal(write_log([record]))
    assert len(message) < 200
    assert message.isprintable()


@pytest.mark.parametrize("tail", [" x", "}", " {}", ",", "\0", ' {"i": 1}'])
def test_nothing_follows_a_record_on_its_line(record: dict[str, Any], write_log: WriteLog, tail: str) -> None:
    message = refusal(write_log([json.dumps(record) + tail]))
    assert message.startswith("log.json:1: expected the end of the line, found "), message


@pytest.mark.parametrize("key", ["i", "r"])
def test_a_doubled_member_is_refused(record: dict[str, Any], write_log: WriteLog, key: str) -> None:
    line = f'{json.dumps(record)[:-1]}, "{key}": {json.dumps(record[key])}}}'
    assert refusal(write_log([line])).startswith(f'log.json:1: expected one "{key}"')


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([["CI", 1]] * 4097, "expected the steps to be shorter"),
        ([["RE", 1, list(range(1025))]], "step 0: expected RE after_ids to be shorter"),
        ([["PR", 1, 0, "x" * 257]], "step 0: expected PR pragma_type to be shorter"),
    ],
)
def test_what_is_longer_than_any_program_is_refused(
    record: dict[str, Any], write_log: WriteLog, steps: list[Any], expected: str
) -> None:
    record["i"][1][1] = steps
    message = refusal(write_log([record]))
    assert re.match(rf"log\.json:1: (step \d+: )?{expected.removeprefix('step 0: ')}", message), message


def test_a_line_cut_anywhere_is_refused_as_truncated(record: dict[str, Any], write_log: WriteLog) -> None:
    line = json.dumps(record)
    cuts = [line[:end] for end in range(1, len(line))]

    batch = read_records(write_log(cuts), errors="skip")

    assert len(batch) == 0
    assert sum(batch.skipped.values()) == len(cuts)
    assert set(batch.skipped) <= {"truncated line", "not JSON", "wrong type"}
    assert batch.skipped["truncated line"] > 0.9 * len(cuts)
    assert refusal(write_log([cuts[-1]])) == "log.json:1: expected ',' or '}', found the end of the line"
