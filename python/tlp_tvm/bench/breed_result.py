"""The result of a breeding benchmark."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class BreedResult:
    """Rates in programs per second, best of the rounds; a child equal to another does not count."""

    task: str
    target: str
    model: str
    programs: int
    """Children of a generation."""
    threads: int
    rounds: int
    bred: float
    """Made, and for a GPU checked."""
    embedded: float
    """Programs at hand, encoded to memory."""
    bred_embedded: float
    """Both, one after the other."""
    scored: float
    """Programs at hand, encoded and scored in one pass."""
    network: float
    """The network alone, on embeddings at hand."""
    bred_scored: float
    """All of it, one generation after the other."""
    tvm: float
    """TVM's evolution with the same model: programs that it bred and scored."""
    tvm_scoring: float
    """Share of TVM's time that is scoring."""

    @property
    def ratio(self) -> float:
        """Speedup over TVM's evolution."""
        return self.bred_scored / self.tvm

    @property
    def of_network(self) -> float:
        """Share of the network's own rate that is left with breeding and encoding."""
        return self.bred_scored / self.network

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio, "of_network": self.of_network}
