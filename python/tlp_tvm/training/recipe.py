"""The networks that are trained: our recipe by default, and the published one.

Ours was chosen by cross-validation over the training tasks of `datasets/`. The defaults of `TrainSettings`
are the other half of it.
"""

from __future__ import annotations

from typing import Any

MODELS: dict[str, dict[str, Any]] = {"recipe": {"hidden": 64, "members": 2}, "paper": {"faithful": True}}
"""Name -> the fields of `TLPSettings` that the layout leaves open. The shipped models have as many members as
their use allows: four, or three to score 20,000 programs per second (`make pretrained`)."""
