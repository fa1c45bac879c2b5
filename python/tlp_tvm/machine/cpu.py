"""This machine's CPU: its vector extensions, the LLVM target that uses them, and the platform that it is."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_MCPU = (
    ("skylake-avx512", {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}),
    ("core-avx2", {"avx2", "fma"}),
    ("nehalem", {"sse4_2"}),
)
"""LLVM's name of a CPU and the flags it takes for granted, best first. Newer names (znver4, sapphirerapids)
have no wider vectors, and the LLVM 10 of the bundled TVM does not know them."""

_VECTORS = {"skylake-avx512": "avx512", "core-avx2": "avx2", "nehalem": "sse42"}
"""What a target's name of a CPU says of vectors."""

_ZEN_4 = (range(0x10, 0x20), range(0x60, 0x80), range(0xA0, 0xB0))
"""Models of AMD's family 25; the others are Zen 3. Source: AMD's revision guides."""


@dataclass(frozen=True)
class Cpu:
    """The CPU that this process may use.

    Attributes:
        model: what it calls itself, and its family and model, as virtual machines hide the rest of the name:
            e.g. "AMD EPYC (family 25, model 17)".
        mcpu: what to tell LLVM; empty for a CPU that is not x86-64.
        cores: how many this process may run on.
        generation: of AMD's, e.g. "zen4"; of others' family and model, e.g. "family6-model85".
    """

    model: str
    mcpu: str
    cores: int
    generation: str

    @property
    def target(self) -> str:
        """TVM target for this CPU."""
        mcpu = f" -mcpu={self.mcpu}" if self.mcpu else ""
        return f"llvm{mcpu} -num-cores={self.cores}"

    def threads(self, target: str) -> int:
        """How many threads a program for a target takes here.

        Args:
            target: TVM's, as text; without -num-cores it runs on all cores.
        """
        named = _cores_named(target)
        return min(named, self.cores) if named else self.cores

    def platform(self, target: str) -> str:
        """A name for measurements here: processor, vectors and threads, e.g. "zen4-avx512-2t".

        Args:
            target: TVM's, as text; without -num-cores it runs on all cores.

        Returns:
            Empty if the target is not of a CPU, or names none.
        """
        mcpu = re.search(r"\bmcpu\W+([\w.-]+)", target)
        if mcpu is None:
            return ""
        threads = _cores_named(target) or self.cores
        return f"{self.generation}-{_VECTORS.get(mcpu[1], mcpu[1])}-{threads}t"


def _cores_named(target: str) -> int:
    """0 where a target names none."""
    found = re.search(r"\bnum-cores\W+(\d+)", target)
    return int(found[1]) if found else 0


def peak_rate(threads: int) -> float:
    """What the processor reaches at most, by multiplying in registers alone; takes a twentieth of a second.

    Args:
        threads: at once; 0 for all cores that this process may run on.

    Returns:
        Float32 operations a second; a product that is added counts as two.
    """
    from tlp_tvm import _core

    return _core.peak_rate(threads)


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
    return Cpu(name, mcpu, len(os.sched_getaffinity(0)), _generation(first))


def _generation(fields: dict[str, str]) -> str:
    try:
        family, model = int(fields["cpu family"]), int(fields["model"])
    except (KeyError, ValueError):
        return "unknown"
    if fields.get("vendor_id") != "AuthenticAMD" or family not in (23, 25, 26):
        return f"family{family}-model{model}"
    if family == 23:
        return "zen2" if model >= 0x30 else "zen1"
    if family == 26:
        return "zen5"
    return "zen4" if any(model in models for models in _ZEN_4) else "zen3"
