"""Where the tests and what they read lie."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TESTS = Path(__file__).resolve().parent
DATA = TESTS / "data"
ROOT = TESTS.parents[1]


def python_path(room: str) -> str:
    """PYTHONPATH of a child that imports a test module of a room."""
    own = [str(TESTS / room), str(TESTS)]
    return os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])


def benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script of benchmarks/, with those beside it to be imported until the test ends."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module(name)
