"""The measures of a ranking, and their mean and spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tlp_tvm.metrics.bootstrap import of_ratio
from tlp_tvm.metrics.correlation import Agreement
from tlp_tvm.metrics.ranked_groups import RankedGroup


@dataclass(frozen=True)
class OverSeeds:
    """A number over seeds."""

    mean: float
    deviation: float
    """Standard deviation; 0 for one seed."""
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> OverSeeds:
        """Sum up at least one value."""
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), deviation, float(min(values)), float(max(values)))


@dataclass(frozen=True)
class Measures:
    """What one seed's ranking of a group is measured by."""

    top: dict[int, float]
    """k -> top-k."""
    agreement: Agreement
    parts: dict[int, tuple[list[float], list[float]]]
    """k -> what top-k is the ratio of, per task; empty for chance."""

    @classmethod
    def of(cls, group: RankedGroup, ks: Sequence[int], seed: int) -> Measures:
        """Of the group's scores."""
        parts = {k: group.parts(k, seed) for k in ks}
        return cls({k: group.top(k, seed) for k in ks}, group.agreement, parts)

    @classmethod
    def of_chance(cls, group: RankedGroup, ks: Sequence[int], seed: int) -> Measures:
        """Of a random pick in the group; its scores are equal."""
        return cls({k: group.random(k, seed).mean for k in ks}, group.agreement, {})


def measures_over_seeds(found: Sequence[Measures]) -> dict[str, Any]:
    """The fields of a row: "top", its "interval" over tasks, and those of `Agreement`.

    Args:
        found: one entry per seed.
    """
    tops = {k: OverSeeds.of([each.top[k] for each in found]) for k in found[0].top}
    names = ("spearman", "kendall", "pairwise_accuracy")
    intervals = {
        k: of_ratio(*(np.array([each.parts[k][side] for each in found]).T for side in (0, 1)))
        for k in found[0].parts
    }
    return {"top": tops, "interval": intervals} | {
        name: OverSeeds.of([getattr(each.agreement, name) for each in found]) for name in names
    }


def as_row(row: Any) -> dict[str, Any]:
    """A row with these fields for JSON."""
    by_k = {name: {str(k): asdict(v) for k, v in getattr(row, name).items()} for name in ("top", "interval")}
    return {**asdict(row), **by_k}
