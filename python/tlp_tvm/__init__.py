"""TLP, a learned cost model for TVM's auto-scheduler, as a plugin.

`import tlp_tvm` is light: TVM and torch are imported by what needs them.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from tlp_tvm._core import __version__

if TYPE_CHECKING:
    from tlp_tvm.embedding import EncodingReport
    from tlp_tvm.features import extract_records
    from tlp_tvm.layout import FeatureLayout
    from tlp_tvm.model.checkpoint import load_model
    from tlp_tvm.record_batch import RecordBatch
    from tlp_tvm.records.detect import iter_records, read_records
    from tlp_tvm.tuning.flow import tune

_HOMES = {
    "EncodingReport": "tlp_tvm.embedding",
    "FeatureLayout": "tlp_tvm.layout",
    "RecordBatch": "tlp_tvm.record_batch",
    "extract_records": "tlp_tvm.features",
    "extract_states": "tlp_tvm.ansor.reading.states",
    "extract_traces": "tlp_tvm.metaschedule.reading.traces",
    "iter_records": "tlp_tvm.records.detect",
    "load_model": "tlp_tvm.model.checkpoint",
    "read_records": "tlp_tvm.records.detect",
    "tune": "tlp_tvm.tuning.flow",
}
"""Public name -> the module that defines it."""

_LEAVES = ("ansor", "metaschedule")
"""What is one framework's alone: `tlp_tvm.ansor.load_tvm()`, `tlp_tvm.metaschedule.TLPCostModel`."""

_MOVED = {"load_tvm": "ansor", "steps_of": "ansor"}
"""Names of version 0.1 that mean Ansor alone -> where they are now."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _LEAVES:
        return importlib.import_module(f"tlp_tvm.{name}")
    if name in _MOVED:
        warnings.warn(
            f"tlp_tvm.{name} is now tlp_tvm.{_MOVED[name]}.{name}; the old name goes in the next version",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(f"tlp_tvm.{_MOVED[name]}"), name)
    raise AttributeError(f"module 'tlp_tvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_LEAVES])


__all__ = [
    "EncodingReport",
    "FeatureLayout",
    "RecordBatch",
    "__version__",
    "extract_records",
    "extract_states",
    "extract_traces",
    "iter_records",
    "load_model",
    "read_records",
    "tune",
]
