"""What a benchmark of scoring says, of either framework."""

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
    """How many times less processor time ours takes: what a busy machine leaves of the comparison."""
    ours: float
    """`TLPCostModel.predict`."""
    embedding: float
    """Only reading and embedding the programs, a part of it."""
    xgb: float
    """The `predict` of TVM's XGBModel, its features included."""
    trees: int
    invalid: float = 0.0
    """Share of the programs that TVM's model calls invalid."""
    refused: float = 0.0
    """Share of the programs that ours calls invalid (`ansor.reading.gpu_check`)."""

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.ours / self.xgb

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio}
