"""How a task of MetaSchedule is named: by TVM's structural hash of what it computes, whatever the target."""

from __future__ import annotations

from typing import Any

from tlp_tvm.metaschedule.loading.locate import load_tvm


def workload_key(module: Any) -> str:
    """The name of what an IRModule computes.

    Returns:
        16 hexadecimal characters.
    """
    load_tvm()
    from tvm_ffi import structural_hash

    return key_of_hash(structural_hash(module))


def key_of_hash(number: int) -> str:
    """The same of a hash, as a database's table of workloads has it, signed or not."""
    return f"{number & (1 << 64) - 1:016x}"
