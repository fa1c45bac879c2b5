"""Measure records read with Python's json: what the native reader must agree with, line for line.

A record is one line of JSON (TVM 0.8 to 0.19, `src/auto_scheduler/measure_record.cc`):

    {"i": [[workload key, target, hardware, target host, layout rewrite, inputs], [stages, steps]],
     "r": [[cost, ...], error number, seconds in all, timestamp], "v": "v0.6"}

Older versions end the task after two, three, four or five members, or have no "v". `parse` takes what
Python's json takes, less NaN and Infinity, texts that are no Unicode (lone surrogates), a second "i" or "r",
and what no log holds: numbers beyond 64 bits, lists longer than any program's, nesting beyond 64 levels.
"""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import dataclass
from typing import Any, NoReturn

INT32, INT64 = 2**31, 2**63
MAX_STEPS, MAX_ITEMS, MAX_NAME, MAX_HARDWARE, MAX_DEPTH = 4096, 1024, 256, 64, 64
FAILED_COST = 1e10

FIELDS: dict[str, str] = {
    "AN": "iii",
    "FU": "i*",
    "PR": "iis",
    "RE": "i*",
    "SP": "iil*b",
    "FSP": "iiii",
    "FFSP": "ii*ib",
    "SA": "iiii",
    "CA": "iii",
    "CI": "i",
    "CR": "i",
    "CHR": "is*",
    "CHW": "is",
    "RF": "iii",
}
"""Fields after the kind: i a 32-bit number, l a 64-bit one, b a flag, s a name, * a list of numbers."""


class RefusedError(ValueError):
    """The line is no record."""


class Pairs(list[tuple[str, Any]]):
    """A JSON object with every pair it was written with."""


@dataclass(frozen=True)
class Record:
    steps: list[list[Any]]
    costs: list[float]
    error: int
    timestamp: int
    workload_key: str
    target: str
    hardware: tuple[int, ...] | None
    target_host: str

    @property
    def latency(self) -> float:
        """Median cost in seconds; infinite for a program that failed."""
        if self.error != 0 or any(cost >= FAILED_COST for cost in self.costs):
            return math.inf
        return statistics.median(self.costs)


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise RefusedError(what)


def integer(value: Any, limit: int = INT64) -> int:
    expect(type(value) is int and -limit <= value < limit, f"integer {value!r}")
    return value


def number(value: Any) -> float:
    expect(type(value) in (int, float), f"number {value!r}")
    try:
        value = float(value)
    except OverflowError as error:
        raise RefusedError("too large") from error
    expect(math.isfinite(value), "finite")
    return value


def text(value: Any) -> str:
    expect(isinstance(value, str), f"text {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RefusedError("lone surrogate") from error
    return value


def check_ignored(value: Any, depth: int = 0) -> None:
    """What no field of a record is must be JSON all the same."""
    expect(depth <= MAX_DEPTH, "nesting")
    if isinstance(value, str):
        text(value)
    elif isinstance(value, Pairs):
        for key, item in value:
            text(key)
            check_ignored(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            check_ignored(item, depth + 1)


def check_step(step: Any) -> None:
    expect(type(step) is list and len(step) > 0, "step")
    expect(text(step[0]) in FIELDS, f"kind {step[0]!r}")
    fields = FIELDS[step[0]]
    expect(len(step) == 1 + len(fields), f"fields of {step[0]}")
    for field, value in zip(fields, step[1:], strict=True):
        if field == "i":
            integer(value, INT32)
        elif field == "l":
            integer(value)
        elif field == "b":
            expect(integer(value) in (0, 1), "flag")
        elif field == "s":
            expect(len(text(value).encode()) <= MAX_NAME, "name")
        else:
            expect(type(value) is list and len(value) <= MAX_ITEMS, "list")
            for item in value:
                integer(item)


def check_task(task: Any) -> None:
    expect(type(task) is list and 2 <= len(task) <= 6, "task")
    for value in task[:2] + task[3:4]:
        text(value)
    for hardware in task[2:3]:
        expect(type(hardware) is list and len(hardware) <= MAX_HARDWARE, "hardware")
        for parameter in hardware:
            integer(parameter)
    for layout_rewrite in task[4:5]:
        integer(layout_rewrite, INT32)
    for names in task[5:6]:
        expect(type(names) is list, "inputs")
        for name in names:
            text(name)


def no_constant(name: str) -> NoReturn:
    raise RefusedError(name)


def parse(line: bytes) -> Record:
    """One line as a record.

    Raises:
        RefusedError: the line is not JSON, or JSON that is no record.
    """
    try:
        record = json.loads(line.decode(), parse_constant=no_constant, object_pairs_hook=Pairs)
    except (ValueError, RecursionError) as error:
        raise RefusedError(str(error)) from error
    expect(isinstance(record, Pairs), "record")
    keys = [text(key) for key, _ in record]
    expect(keys.count("i") == 1 and keys.count("r") == 1, "one i and one r")
    members = dict(record)
    for key, value in record:
        if key not in ("i", "r"):
            check_ignored(value)

    expect(type(members["i"]) is list and len(members["i"]) == 2, "i")
    task, state = members["i"]
    check_task(task)
    expect(type(state) is list and len(state) == 2, "state")
    stages, steps = state
    expect(type(stages) is list and type(steps) is list and len(steps) <= MAX_STEPS, "stages and steps")
    check_ignored(stages)
    for step in steps:
        check_step(step)

    result = members["r"]
    expect(type(result) is list and len(result) == 4 and type(result[0]) is list, "r")
    costs = [number(cost) for cost in result[0]]
    error = integer(result[1], INT32)
    expect(all(cost >= 0 for cost in costs) and (len(costs) > 0 or error != 0), "costs")
    number(result[2])
    expect(abs(number(result[3])) <= 9e15, "timestamp")
    return Record(
        steps=steps,
        costs=costs,
        error=error,
        timestamp=int(number(result[3])),
        workload_key=task[0],
        target=task[1],
        hardware=tuple(task[2]) if len(task) > 2 else None,
        target_host=task[3] if len(task) > 3 else "",
    )
