"""TLP and MTL-TLP: the network, its losses, its files."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tlp_tvm.model.checkpoint import load_model
    from tlp_tvm.model.scoring import ScoringModel

_HOMES = {"ScoringModel": "tlp_tvm.model.scoring", "load_model": "tlp_tvm.model.checkpoint"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tlp_tvm.model' has no attribute {name!r}")


__all__ = ["ScoringModel", "load_model"]
