"""All that knows MetaSchedule, the search of today's TVM; nothing here is imported before it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "TLPCostModel": "cost_model",
    "TraceRecords": "records",
    "TvmInfo": "locate",
    "load_tuned": "library",
    "load_tvm": "locate",
    "local_builder": "builder",
    "read_tuning_records": "records",
    "sample_traces": "sampling",
    "tvm_info": "locate",
}
"""Public name to the module that defines it."""

__all__ = [
    "TLPCostModel",
    "TraceRecords",
    "TvmInfo",
    "load_tuned",
    "load_tvm",
    "local_builder",
    "read_tuning_records",
    "sample_traces",
    "tvm_info",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
