"""Parallel loops of what TVM compiles or loads, shared out by us (`tlp_tvm.machine.loop_threads`)."""

from __future__ import annotations

from typing import Any

from tlp_tvm.machine.loop_threads import share_loops


def share_loops_of(tvm: Any) -> bool:
    """Have them shared out from now on.

    Args:
        tvm: the module.

    Returns:
        Whether they will be; not with a TVM whose library looks up no function when it is loaded.
    """
    return share_loops(str(tvm._ffi.base._LIB._name))
