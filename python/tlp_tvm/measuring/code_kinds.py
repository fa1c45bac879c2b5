"""How programs become machine code, in the words that runs and logs keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FOLDED, PLAIN = "folded", "plain"
"""By TVM's own LLVM, with addresses whose constant parts a processor adds for nothing, or as TVM computes
them. Any other word is the name of another LLVM, which folds them by itself."""

PREFETCHING = "-prefetching"
"""Ends the name of what makes programs that fetch the weights that they need next."""

POLYNOMIALS = "-polynomials"
"""Ends the name of what makes programs that compute exp and the like as MetaSchedule's networks do; those
that were measured before called a libm for each number."""

IN_PARTS = "-in-parts"
"""Ends the name of an LLVM whose programs compute in parts what registers are too few for."""


def is_tvms_own(code: str) -> bool:
    """Whether TVM's own LLVM compiles programs so.

    Args:
        code: as `MeasureSettings` has it.
    """
    return code in (FOLDED, PLAIN)


def by_tvm(code: str) -> str:
    """The same, or what is nearest to it, where only TVM's own LLVM will do.

    Args:
        code: as `MeasureSettings` has it.
    """
    return code if is_tvms_own(code) else FOLDED


def noted_code(noted: Mapping[str, Any]) -> str:
    """How programs were compiled, as a run or a log says.

    Args:
        noted: its entries; older ones call it "addresses", or do not say.
    """
    return str(noted.get("code", noted.get("addresses", PLAIN)))


def code_as_before(noted: Mapping[str, Any], best: str) -> str:
    """How to compile programs that join earlier ones.

    Args:
        noted: what is said of those.
        best: how it is done here.

    Returns:
        As before, where that can be done here; else the best.
    """
    before, can = noted_code(noted), best
    for end in ("", IN_PARTS, POLYNOMIALS, PREFETCHING):
        can = can.removesuffix(end)
        if before == can:
            return before
    return before if is_tvms_own(before) else best
