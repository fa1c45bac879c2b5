"""How much code TVM made of each function of a network, before LLVM makes machine code of it.

LLVM does that when the library first runs, and takes more than in proportion: TVM's own schedule of a
depthwise convolution with a polynomial behind it is unrolled to 47,000 lines, and EfficientNet-B0 of such
schedules takes two minutes.
"""

from __future__ import annotations

import re
from typing import Any

_COMPUTES = "_compute_"
"""Ends the name of what a function computes, which is apart from the check of its arguments."""

_LAMBDA = re.compile(r"@(__tvm_parallel_lambda[.\d]*)")
_DEFINED = re.compile(r"^define [^@]*@([\w.]+)\(")


def code_sizes(built: Any) -> dict[str, int]:
    """Lines of LLVM's language.

    Args:
        built: what `relay.build` gave, for a CPU; of another device it says nothing.

    Returns:
        Name of a function -> lines, those of its parallel loops included.
    """
    library = built.get_lib()
    if library.type_key != "llvm":
        return {}
    lines, inside = _functions(library.get_source("ll"))
    return {
        name.removesuffix(_COMPUTES): lines[name] + sum(lines.get(each, 0) for each in inside[name])
        for name in lines
        if name.endswith(_COMPUTES)
    }


def _functions(text: str) -> tuple[dict[str, int], dict[str, set[str]]]:
    """Lines of each function, and the parallel loops that it starts."""
    lines: dict[str, int] = {}
    inside: dict[str, set[str]] = {}
    name = ""
    for line in text.splitlines():
        if found := _DEFINED.match(line):
            name = found[1]
            lines[name], inside[name] = 0, set()
        elif line == "}":
            name = ""
        elif name:
            lines[name] += 1
            if "__tvm_parallel_lambda" in line:
                inside[name].update(_LAMBDA.findall(line))
    return lines, inside
