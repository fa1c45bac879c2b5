"""Settings of baselines, and the cache of what takes long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tlp_tvm.files import user_cache

PUBLISHED_EPOCHS = 50
"""Of TLP (section 6.1 of its paper), and of TenSet's MLP."""


@dataclass(frozen=True)
class BaselineSettings:
    """The same for all baselines."""

    rounds: int = 300
    """Trees of XGBoost."""
    epochs: int | None = None
    """Passes over the programs, of those that are networks; None for `PUBLISHED_EPOCHS`, or our recipe's."""
    cache: Path = field(default_factory=user_cache)
    """Holds per-store features and the training state of the published TLP."""
    network_files: Mapping[str, str] = field(default_factory=dict)
    """Name -> file of networks that are not built in; per-store features are computed from them."""
    device: str = "auto"
    """Of the networks: "auto", or torch's name."""
    most_programs: int = 200_000
    """XGBoost takes its table whole: of more programs, each task gives a random part."""
