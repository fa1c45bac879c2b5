"""All that knows MetaSchedule, the search of today's TVM; nothing here is imported before it is asked for."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

_HOMES = {
    "TLPCostModel": "search.cost_model",
    "TvmInfo": "loading.locate",
    "backend_counts": "torch_compile.backend",
    "load_tuned": "networks.library",
    "extract_traces": "reading.traces",
    "load_tvm": "loading.locate",
    "local_builder": "measuring.builder",
    "read_tuning_records": "reading.records",
    "sample_traces": "search.sampling",
    "tvm_info": "loading.locate",
}
"""Public name to the module that defines it."""

__all__ = [
    "TLPCostModel",
    "TvmInfo",
    "backend_counts",
    "extract_traces",
    "load_tuned",
    "load_tvm",
    "local_builder",
    "read_tuning_records",
    "sample_traces",
    "tvm_info",
]


_MOVED = {"TraceRecords": ("tlp_tvm.record_batch", "RecordBatch")}
"""Names of version 0.1 -> the module that has them now, and their name there."""


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        module, new = _MOVED[name]
        warnings.warn(
            f"{__name__}.{name} is now {module}.{new}; the old name goes in the next version",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(module), new)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
