"""Settings of a few-shot evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tlp_tvm.evaluation.labelling import Choose, LabelCount
from tlp_tvm.training.recipe import MODELS
from tlp_tvm.training.train_settings import TrainSettings


@dataclass(frozen=True)
class FewShotSettings:
    """One run."""

    target: str
    """The platform whose labels are few."""
    cache: Path
    """Holds every finished training, so that a kill costs one."""
    recipes: Sequence[str]
    counts: Sequence[LabelCount]
    seeds: Sequence[int] = (0,)
    chooses: Sequence[Choose] = (Choose.RANDOM,)
    ks: Sequence[int] = (1, 5)
    model: dict[str, Any] = field(default_factory=lambda: MODELS["recipe"])
    """Fields of `TLPSettings` that the layout leaves open."""
    training: TrainSettings = field(default_factory=TrainSettings)
    device: str = "auto"
