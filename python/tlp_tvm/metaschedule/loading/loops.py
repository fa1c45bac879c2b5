"""Parallel loops of what TVM compiles or loads, shared out by us (`tlp_tvm.machine.loop_threads`)."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from tlp_tvm.machine.loop_threads import share_loops

_RUNTIME = "tvm_runtime"


def share_loops_of(tvm: Any) -> bool:
    """Have them shared out from now on.

    Args:
        tvm: the module.

    Returns:
        Whether they will be; not with a TVM that keeps its libraries elsewhere.
    """
    runtime = getattr(tvm.base, "_LOADED_LIBS", {}).get(_RUNTIME)
    if runtime is None:
        return False
    return share_loops(str(runtime._name), _registry())


@functools.cache
def _registry() -> str:
    """Path of tvm-ffi's library: looked for in folders, and asked for with each program that is measured."""
    return str(importlib.import_module("tvm_ffi.libinfo").find_libtvm_ffi())
