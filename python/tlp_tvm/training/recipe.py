"""Our recipe: what `tlp-tvm train` does where nothing else is said, and what stands as "tlp" in comparisons.

Chosen by cross-validation over the training tasks of `datasets/` (docs/results.md). The defaults of
`TrainSettings` are the other half of it.
"""

from __future__ import annotations

from typing import Any

RECIPE_LAYOUT = "ansor"

RECIPE_MODEL: dict[str, Any] = {"hidden": 64, "members": 2, "dropout": 0.1}
"""Fields of `TLPSettings`."""
