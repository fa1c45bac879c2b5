"""TLP, a learned cost model for TVM's auto-scheduler, as a plugin.

`import tlp_tvm` is light: TVM and torch are imported by what needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tlp_tvm._core import __version__

if TYPE_CHECKING:
    from tlp_tvm.ansor.loading.locate import load_tvm
    from tlp_tvm.ansor.reading.records import RecordBatch, iter_records, read_records
    from tlp_tvm.embedding import EncodingReport
    from tlp_tvm.features import extract_records, extract_states, extract_traces, steps_of
    from tlp_tvm.layout import FeatureLayout
    from tlp_tvm.model.checkpoint import load_model

_HOMES = {
    "EncodingReport": "tlp_tvm.embedding",
    "FeatureLayout": "tlp_tvm.layout",
    "RecordBatch": "tlp_tvm.ansor.reading.records",
    "extract_records": "tlp_tvm.features",
    "extract_states": "tlp_tvm.features",
    "extract_traces": "tlp_tvm.features",
    "iter_records": "tlp_tvm.ansor.reading.records",
    "load_model": "tlp_tvm.model.checkpoint",
    "load_tvm": "tlp_tvm.ansor.loading.locate",
    "read_records": "tlp_tvm.ansor.reading.records",
    "steps_of": "tlp_tvm.features",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tlp_tvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


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
    "load_tvm",
    "read_records",
    "steps_of",
]
