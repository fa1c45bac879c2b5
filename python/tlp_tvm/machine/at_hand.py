"""Whether this machine can run what is compiled for a target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm

_VECTORS = ("avx", "avx2", "fma", "f16c", "bmi2", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")
"""Extensions that LLVM and the kernel call by the same name, and that compiled programs are full of."""


def runs_here(target: Any, cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether programs for a target run on this machine.

    Args:
        target: TVM target.
        cpuinfo: the kernel's description of the CPUs.
    """
    tvm = load_tvm()
    if target.kind.name != "llvm":
        return bool(tvm.device(str(target.kind.name), 0).exist)
    codegen = tvm.target.codegen
    triple = str(target.attrs.get("mtriple", ""))
    if triple and triple.split("-", maxsplit=1)[0] != str(codegen.llvm_get_system_triple()).split("-")[0]:
        return False
    features_of = getattr(codegen, "llvm_get_cpu_features", None)  # not in older TVMs
    if features_of is None or not cpuinfo.exists():
        return True
    needed = {str(feature) for feature in features_of(target)} & set(_VECTORS)
    flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "")
    return not flags or needed <= set(flags.split())
