"""All that knows Ansor, TVM's auto-scheduler; nothing here is imported before it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "TLPCostModel": "cost_model",
    "TvmInfo": "locate",
    "load_tvm": "locate",
    "tvm_info": "locate",
    "check_layout": "self_check",
    "this_cpu": "cpu",
    "load_network": "networks",
    "load_tuned": "library",
    "network_from": "networks",
    "extract_tasks": "tasks",
    "operator_tasks": "tasks",
    "sample_states": "sampling",
}
"""Public name to the module that defines it."""

__all__ = [
    "TLPCostModel",
    "TvmInfo",
    "check_layout",
    "extract_tasks",
    "load_network",
    "load_tuned",
    "load_tvm",
    "network_from",
    "operator_tasks",
    "sample_states",
    "this_cpu",
    "tvm_info",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
