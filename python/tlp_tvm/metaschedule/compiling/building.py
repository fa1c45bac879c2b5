"""TVM's way from scheduled programs to machine code, with what is ours on it."""

from __future__ import annotations

import functools
from typing import Any

from tlp_tvm.lowered.prefetching import prefetching
from tlp_tvm.measuring.code_kinds import PLAIN, POLYNOMIALS, PREFETCHING
from tlp_tvm.metaschedule.compiling.tirx_dialect import TirxDialect

CODE = f"{PLAIN}{PREFETCHING}{POLYNOMIALS}"
"""How programs for a CPU become machine code here, at best; for others it says no more than "plain"."""

_TVMS = "s_tir"
"""TVM's own way, by its name."""

_BITS = 32
"""Of loops and places in arrays."""


def way(tvm: Any, target: Any, code: str) -> str:
    """The way that programs go, by its name, for TVM's functions that build.

    Args:
        tvm: the module.
        target: `tvm.target.Target`.
        code: as `measuring.pool.MeasureSettings` has it.
    """
    if target.kind.name != "llvm" or PREFETCHING not in code:
        return _TVMS
    name = f"tlp_tvm.{code}"
    tvm.tirx.register_tir_pipeline(name, functools.partial(_fetching, tvm))
    return name


def _fetching(tvm: Any) -> tuple[Any, Any, Any]:
    """TVM's way, and prefetches in its middle: what comes before is done twice, and changes nothing again."""
    blocks, loops = tvm.s_tir.transform, tvm.tirx.transform
    first = [
        blocks.CanonicalizeLoop(),
        blocks.LowerInitBlock(),
        blocks.PlanAndUpdateBufferAllocationLocation(),
        blocks.ConvertBlocksToOpaque(),
        blocks.CompactBufferAllocation(),
        blocks.LowerMatchBuffer(),
        blocks.StmtSimplify(),
        blocks.LowerOpaqueBlock(),
        loops.FlattenBuffer(),
        loops.NarrowDataType(_BITS),
    ]
    theirs, *finally_ = tvm.tirx.get_tir_pipeline(_TVMS)
    return tvm.transform.Sequential([*first, prefetching(TirxDialect(tvm)), theirs]), *finally_
