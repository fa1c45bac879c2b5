"""Which of TVM's passes compile a program, and which of ours."""

from __future__ import annotations

from typing import Any

from tlp_tvm.ansor.compiling.addresses import folding_addresses

LEFT_OUT = ["tir.RenormalizeSplitPattern"]
"""A third of the time to compile a Winograd program, a fiftieth of that of others; TVM simplifies before and
after it, and programs are as fast without."""

_NO_CSE = {"tir.disable_cse_tir": True}
"""TVM's elimination of common subexpressions takes half of the time to compile and more, of unrolled loops
nearly all, and LLVM does the same: programs are as fast without (`benchmarks/measuring.py` compares)."""

_LAST_PHASE = 3


def of_a_program(tvm: Any, kind: str, folded: bool) -> dict[str, Any]:
    """Settings of a `PassContext` that compiles one program.

    Args:
        tvm: the module; what an old one does not know is left out.
        kind: of the target: "llvm", "cuda".
        folded: whether constant parts of addresses are folded, on a CPU; a newer LLVM does that by itself.
    """
    known = tvm.transform.PassContext.list_configs()
    config = {**_NO_CSE, **_ours(tvm, kind, folded)}
    return {
        "config": {name: value for name, value in config.items() if name in known},
        "disabled_pass": LEFT_OUT,
    }


def of_a_network(tvm: Any, kind: str, needless: tuple[str, ...], folded: bool) -> dict[str, Any]:
    """The same for a whole network of tuned programs.

    Args:
        tvm: the module.
        kind: of the target.
        needless: names of passes that would change nothing more.
        folded: as for its programs.
    """
    program = of_a_program(tvm, kind, folded)
    return {
        "config": {"relay.backend.use_auto_scheduler": True, **program["config"]},
        "disabled_pass": [*program["disabled_pass"], *needless],
        "opt_level": 3,
    }


def _ours(tvm: Any, kind: str, folded: bool) -> dict[str, Any]:
    """A GPU computes addresses in 32 bits at less cost."""
    if kind != "llvm" or not folded:
        return {}
    return {"tir.add_lower_pass": [(_LAST_PHASE, folding_addresses(tvm))]}
