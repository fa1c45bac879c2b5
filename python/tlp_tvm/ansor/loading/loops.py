"""Parallel loops of what TVM compiles or loads, shared out by us (`tlp_tvm.machine.loop_threads`)."""

from __future__ import annotations

from typing import Any

from tlp_tvm.machine.loop_threads import share_loops


def share_loops_of(tvm: Any) -> bool:
    """Have them shared out from now on.

    Args:
        tvm: the module.

    Returns:
        Whether they will be; TVM's library may be built so that nobody can.
    """
    return share_loops(str(tvm._ffi.base._LIB._name))
