"""Where the tests and what they read lie."""

from __future__ import annotations

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parent
DATA = TESTS / "data"
ROOT = TESTS.parents[1]


def python_path(room: str) -> str:
    """PYTHONPATH of a child that imports a test module of a room."""
    own = [str(TESTS / room), str(TESTS)]
    return os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])
