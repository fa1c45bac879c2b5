"""What an encoder gives: embeddings, and a report of what the layout could not encode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Embedding = NDArray[np.float32]
"""(N, L, E) float32: N programs, L primitives, E columns; rows past a program are zero."""


@dataclass
class EncodingReport:
    """What a layout could not encode of the programs, summed over all calls that receive this report."""

    sequences: int = 0
    cut_sequences: int = 0
    """Programs that lost rows."""
    cut_rows: int = 0
    cut_columns: int = 0
    """Values that did not fit the width, or the columns of their list."""
    unknown_kinds: dict[str, int] = field(default_factory=dict)
    unknown_tokens: dict[str, int] = field(default_factory=dict)
    """ "KIND.field=name" -> how often."""

    def add(self, counts: dict[str, Any]) -> None:
        """Add what one native call reported."""
        for name in ("sequences", "cut_sequences", "cut_rows", "cut_columns"):
            setattr(self, name, getattr(self, name) + counts[name])
        for mine, more in (
            (self.unknown_kinds, counts["unknown_kinds"]),
            (self.unknown_tokens, counts["unknown_tokens"]),
        ):
            for key, count in more.items():
                mine[key] = mine.get(key, 0) + count
