"""Logs for tests: where the project's own lie, a record to damage, and what a reader says of the damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import pytest

from tlp_tvm.errors import RecordError
from tlp_tvm.records.detect import read_records

DATASETS = Path(__file__).parents[2] / "datasets"

STEPS: list[list[Any]] = [
    ["AN", 2, 9, 2],
    ["FU", 2, [0, 1]],
    ["PR", 2, 0, "auto_unroll_max_step$64"],
    ["RE", 2, [0, 2, 1]],
    ["SP", 2, 0, 512, [4, 2, 8], 1],
    ["FSP", 4, 0, 0, 2],
    ["FFSP", 6, 0, [4, 3, 2, 1], 1, 1],
    ["SA", 2, 1, 32, 4],
    ["CA", 2, 3, 4],
    ["CI", 7],
    ["CR", 3],
    ["CHR", 4, "shared", [5]],
    ["CHW", 2, "local"],
    ["RF", 1, 2, 2],
]
"""One step of every kind; together they are no program."""


class WriteLog(Protocol):
    """Writes a log of lines: bytes and texts as they are, anything else as JSON."""

    def __call__(self, lines: list[Any], name: str = "log.json") -> Path: ...


def as_bytes(line: Any) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def refusal(path: Path) -> str:
    """What the reader says of a bad log, without the name of its folder."""
    with pytest.raises(RecordError) as error:
        read_records(path)
    return str(error.value).removeprefix(f"{path.parent}/")
