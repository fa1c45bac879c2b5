"""All that knows Ansor, TVM's auto-scheduler; nothing here is imported before it is asked for."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

_HOMES = {
    "TLPCostModel": "search.cost_model",
    "TvmInfo": "loading.locate",
    "extract_states": "reading.states",
    "load_tvm": "loading.locate",
    "steps_of": "reading.states",
    "tvm_info": "loading.locate",
    "check_layout": "loading.self_check",
    "load_network": "networks.builtin",
    "load_tuned": "networks.library",
    "network_from": "networks.builtin",
    "extract_tasks": "networks.tasks",
    "operator_tasks": "networks.tasks",
    "sample_states": "search.sampling",
}
"""Public name to the module that defines it."""

__all__ = [
    "TLPCostModel",
    "TvmInfo",
    "check_layout",
    "extract_states",
    "extract_tasks",
    "load_network",
    "load_tuned",
    "load_tvm",
    "network_from",
    "operator_tasks",
    "sample_states",
    "steps_of",
    "tvm_info",
]


_MOVED = {"this_cpu": "tlp_tvm.machine.cpu"}
"""Names of version 0.1 that are no framework's -> the module that has them now."""


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        warnings.warn(
            f"{__name__}.{name} is now {_MOVED[name]}.{name}; the old name goes in the next version",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(_MOVED[name]), name)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
