"""Which of TVM's passes compile a program, and which of ours."""

from __future__ import annotations

from typing import Any

from tlp_tvm.ansor.compiling.addresses import folding_addresses
from tlp_tvm.ansor.compiling.register_tiles import registers_of, splitting_tiles
from tlp_tvm.ansor.compiling.tir_dialect import TirDialect
from tlp_tvm.lowered.prefetching import prefetching
from tlp_tvm.measuring.code_kinds import FOLDED, IN_PARTS, PREFETCHING

LEFT_OUT = ["tir.RenormalizeSplitPattern"]
"""A third of the time to compile a Winograd program, a fiftieth of that of others; TVM simplifies before and
after it, and programs are as fast without."""

_NO_CSE = {"tir.disable_cse_tir": True}
"""TVM's elimination of common subexpressions takes half of the time to compile and more, of unrolled loops
nearly all, and LLVM does the same: programs are as fast without (`benchmarks/measuring.py` compares)."""

_FIRST_PHASE, _LAST_PHASE = 1, 3


def of_a_program(tvm: Any, target: Any, code: str) -> dict[str, Any]:
    """Settings of a `PassContext` that compiles one program.

    Args:
        tvm: the module; what an old one does not know is left out.
        target: `tvm.target.Target`.
        code: how it becomes machine code, as `measuring.pool.MeasureSettings` has it.
    """
    known = tvm.transform.PassContext.list_configs()
    config = {**_NO_CSE, **_ours(tvm, target, code)}
    return {
        "config": {name: value for name, value in config.items() if name in known},
        "disabled_pass": LEFT_OUT,
    }


def of_a_network(tvm: Any, target: Any, needless: tuple[str, ...], code: str) -> dict[str, Any]:
    """The same for a whole network of tuned programs.

    Args:
        tvm: the module.
        target: as for its programs.
        needless: names of passes that would change nothing more.
        code: as for its programs.
    """
    program = of_a_program(tvm, target, code)
    return {
        "config": {"relay.backend.use_auto_scheduler": True, **program["config"]},
        "disabled_pass": [*program["disabled_pass"], *needless],
        "opt_level": 3,
    }


def _ours(tvm: Any, target: Any, code: str) -> dict[str, Any]:
    """A GPU computes addresses in 32 bits at less cost; a newer LLVM folds them by itself."""
    if target.kind.name != "llvm":
        return {}
    added = []
    if code == FOLDED:
        added.append((_LAST_PHASE, folding_addresses(tvm)))
    if PREFETCHING in code:
        added.append((_FIRST_PHASE, prefetching(TirDialect(tvm))))
    if code.endswith(IN_PARTS) and (registers := registers_of(tvm, target)) is not None:
        added.append((_FIRST_PHASE, splitting_tiles(tvm, registers)))
    return {"tir.add_lower_pass": added} if added else {}
