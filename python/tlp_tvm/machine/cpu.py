"""This machine's CPU: its vector extensions, and the LLVM target that uses them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_MCPU = (
    ("skylake-avx512", {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}),
    ("core-avx2", {"avx2", "fma"}),
    ("nehalem", {"sse4_2"}),
)
"""LLVM's name of a CPU and the flags it takes for granted, best first. Newer names (znver4, sapphirerapids)
have no wider vectors, and the LLVM 10 of the bundled TVM does not know them."""


@dataclass(frozen=True)
class Cpu:
    """The CPU that this process may use.

    Attributes:
        model: what it calls itself, and its family and model, as virtual machines hide the rest of the name:
            e.g. "AMD EPYC (family 25, model 17)".
        mcpu: what to tell LLVM; empty for a CPU that is not x86-64.
        cores: how many this process may run on.
    """

    model: str
    mcpu: str
    cores: int

    @property
    def target(self) -> str:
        """TVM target for this CPU."""
        mcpu = f" -mcpu={self.mcpu}" if self.mcpu else ""
        return f"llvm{mcpu} -num-cores={self.cores}"


def this_cpu(cpuinfo: Path = Path("/proc/cpuinfo")) -> Cpu:
    """Look at the machine.

    Args:
        cpuinfo: the kernel's description of the CPUs.
    """
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    fields = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    first: dict[str, str] = {}
    for name, value in fields:
        first.setdefault(name.strip(), value.strip())
    flags = set(first.get("flags", "").split())
    mcpu = next((name for name, needed in _MCPU if needed <= flags), "")
    name = first.get("model name", "unknown")
    if "cpu family" in first and "model" in first:
        name = f"{name} (family {first['cpu family']}, model {first['model']})"
    return Cpu(name, mcpu, len(os.sched_getaffinity(0)))
