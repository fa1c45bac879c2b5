"""Import TVM's tensor intrinsics in seconds instead of a minute.

TVM 0.27 imports them with every tuning context, in every process that builds programs. Their 250 functions
are parsed at import, and each time `inspect.stack` looks for the sources of all frames among all modules:
27 of 30 CPU seconds, for lines that nobody reads. A worker of TVM's builder is killed after 30 seconds.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from types import FrameType
from typing import Any

INTRINSICS = "tvm.s_tir.tensor_intrin"


def import_intrinsics() -> None:
    """Import them, without looking for the sources of frames."""
    if INTRINSICS in sys.modules:
        return
    complete = inspect.getouterframes
    inspect.getouterframes = _outer_frames
    try:
        importlib.import_module(INTRINSICS)
    finally:
        inspect.getouterframes = complete


def _outer_frames(frame: Any, context: int = 1) -> list[inspect.FrameInfo]:  # noqa: ARG001 - as there
    """`inspect.getouterframes` without source lines."""
    frames = []
    at: FrameType | None = frame
    while at is not None:
        code = at.f_code
        frames.append(inspect.FrameInfo(at, code.co_filename, at.f_lineno, code.co_name, None, None))
        at = at.f_back
    return frames
