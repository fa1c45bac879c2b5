"""What several tests share: a record, and a way to write logs of records."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from logs import STEPS, WriteLog, as_bytes

# Output is wrapped for so wide a terminal. A console takes it over when it is made, before any test runs, and
# workers of pytest-xdist have another width.
os.environ["COLUMNS"] = "220"

# Which native kernels score, in `make test-numeric`; the fastest without it.
if KERNELS := os.environ.get("NATIVE_KERNELS", ""):
    from tlp_tvm.model.native import native_network

    native_network.__defaults__ = (KERNELS,)

# The same examples in every run: a test that fails for one fails for all.
settings.register_profile(
    "same", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")


@pytest.fixture
def record() -> dict[str, Any]:
    """A record with one step of every kind, to be changed at will."""
    task = ['["k", [4, 4]]', "llvm -mcpu=core-avx2", [2, 64, 64, 0, 0, 0, 0, 0], "", 1, []]
    value = {"i": [task, [[], STEPS]], "r": [[0.25, 0.5], 0, 1.5, 1700000000], "v": "v0.6"}
    copy: dict[str, Any] = json.loads(json.dumps(value))
    return copy


@pytest.fixture
def write_log(tmp_path: Path) -> WriteLog:
    """Writes a log into the test's own folder."""

    def write(lines: list[Any], name: str = "log.json") -> Path:
        path = tmp_path / name
        path.write_bytes(b"".join(as_bytes(line) + b"\n" for line in lines))
        return path

    return write


@pytest.fixture
def shifting_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """The wall clock jumps by hours at each look, back and forth.

    Returns:
        Seconds since the fixture began, whatever the wall clock says.
    """
    real, looks, began = time.time, itertools.count(), time.monotonic()
    monkeypatch.setattr(time, "time", lambda: real() + 3600 * (-1) ** (look := next(looks)) * look)
    return lambda: time.monotonic() - began
