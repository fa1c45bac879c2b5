"""What benchmarks of extraction say, of either framework."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class NativeRate:
    """States per second of the native reader with one layout."""

    layout: str
    one_thread: float
    warm: float
    """All threads, states read before."""
    fresh: float
    """All threads, first pass over new states; 0 where none were asked for."""
    fresh_states: int = 0
    """How many those were."""


@dataclass(frozen=True)
class ExtractResult:
    """Rates in states per second, and the native reader's over each baseline's."""

    task: str
    target: str
    states: int
    primitives: float
    """Per state, mean."""
    native: list[NativeRate]
    python_route: float
    tvm_features: float

    def ratios(self, rate: NativeRate) -> dict[str, float]:
        """How many times faster than each baseline."""
        return {
            "warm / TVM features": rate.warm / self.tvm_features,
            "fresh / TVM features": rate.fresh / self.tvm_features,
            "warm / Python route": rate.warm / self.python_route,
        }

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        values = asdict(self)
        for entry, rate in zip(values["native"], self.native, strict=True):
            entry["ratios"] = self.ratios(rate)
        return values


@dataclass(frozen=True)
class TraceExtractResult:
    """Rates in candidates per second."""

    task: str
    target: str
    layout: str
    candidates: int
    primitives: float
    """Per candidate, mean."""
    one_thread: float
    every_thread: float
    python_route: float
    """`Trace.as_json`, `json.dumps`, `json.loads`, an encoder in Python."""
    json_route: float
    """`Trace.as_json`, `json.dumps`, reading and encoding the text natively."""

    @property
    def ratio(self) -> float:
        """How many times faster all threads are than the Python route."""
        return self.every_thread / self.python_route

    @property
    def json_ratio(self) -> float:
        """How many times faster all threads are than the text read natively."""
        return self.every_thread / self.json_route

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio, "json_ratio": self.json_ratio}


def ratio_of_all(results: Sequence[TraceExtractResult], route: str) -> float:
    """How many times sooner all threads have one candidate of each result than `route`, a name of a rate."""
    theirs = math.fsum(1 / getattr(each, route) for each in results)
    return theirs / math.fsum(1 / each.every_thread for each in results)
