"""The result of a scoring benchmark, for either framework."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ScoreResult:
    """Rates in programs per second, best of the rounds."""

    task: str
    target: str
    model: str
    programs: int
    threads: int
    rounds: int
    cpu_ratio: float
    """CPU time of TVM's model / ours; meaningful on a busy machine too."""
    ours: float
    """`TLPCostModel.predict`."""
    embedding: float
    """Reading and embedding alone, a part of `ours`."""
    xgb: float
    """The `predict` of TVM's XGBModel, its features included."""
    trees: int
    invalid: float = 0.0
    """Share of programs that TVM's model calls invalid."""
    refused: float = 0.0
    """Share of programs that ours calls invalid (`ansor.reading.gpu_check`)."""

    @property
    def ratio(self) -> float:
        """Speedup of ours."""
        return self.ours / self.xgb

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio}
