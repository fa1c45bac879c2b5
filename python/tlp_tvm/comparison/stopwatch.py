"""Attributes the seconds of a search to its parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

PARTS = ("search", "score", "learn", "compile", "run")
"""Where the time goes: choosing programs but for scoring them, scoring, learning, compiling, running."""


def timed(part: str, function: Callable[P, R], spent: dict[str, float]) -> Callable[P, R]:
    """The same function with a stop-watch.

    Args:
        part: one of `PARTS`.
        function: to call.
        spent: seconds by part, to which each call's are added.
    """

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        began = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[part] += time.perf_counter() - began

    return call
