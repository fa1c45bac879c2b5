"""The LLVM target of a CPU, from the kernel's description of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlp_tvm.machine.cpu import this_cpu

AVX512 = "avx512f avx512cd avx512bw avx512dq avx512vl"


@pytest.mark.parametrize(
    ("flags", "mcpu"),
    [
        (f"sse4_2 avx2 fma {AVX512}", "skylake-avx512"),
        ("sse4_2 avx2 fma avx512f avx512cd", "core-avx2"),
        ("sse4_2 avx2 fma", "core-avx2"),
        ("sse4_2 avx", "nehalem"),
        ("sse2", ""),
    ],
)
def test_the_flags_choose_the_name(tmp_path: Path, flags: str, mcpu: str) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nmodel name\t: Some CPU: the second\nflags\t\t: fpu {flags}\n\n" * 2)

    cpu = this_cpu(cpuinfo)

    assert cpu.model == "Some CPU: the second"
    assert cpu.mcpu == mcpu
    assert cpu.cores >= 1
    assert cpu.target == (f"llvm -mcpu={mcpu} " if mcpu else "llvm ") + f"-num-cores={cpu.cores}"


def test_a_name_that_a_virtual_machine_hides_has_family_and_model(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("model name\t: AMD EPYC\ncpu family\t: 25\nmodel\t\t: 17\nflags\t: sse2\n")
    assert this_cpu(cpuinfo).model == "AMD EPYC (family 25, model 17)"


@pytest.mark.parametrize(
    ("vendor", "family", "model", "generation"),
    [
        ("AuthenticAMD", 23, 1, "zen1"),
        ("AuthenticAMD", 23, 49, "zen2"),
        ("AuthenticAMD", 25, 1, "zen3"),
        ("AuthenticAMD", 25, 17, "zen4"),
        ("AuthenticAMD", 25, 33, "zen3"),
        ("AuthenticAMD", 26, 2, "zen5"),
        ("GenuineIntel", 6, 85, "family6-model85"),
    ],
)
def test_a_platform_is_processor_vectors_and_threads(
    tmp_path: Path, vendor: str, family: int, model: int, generation: str
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    fields = {"vendor_id": vendor, "cpu family": family, "model": model, "flags": "sse4_2"}
    cpuinfo.write_text("".join(f"{name}\t: {value}\n" for name, value in fields.items()))

    cpu = this_cpu(cpuinfo)

    assert cpu.platform("llvm -keys=cpu -mcpu=core-avx2 -num-cores=3") == f"{generation}-avx2-3t"
    assert cpu.platform('{"kind":"llvm","mcpu":"znver4","num-cores":2}') == f"{generation}-znver4-2t"
    assert cpu.platform(cpu.target) == f"{generation}-sse42-{cpu.cores}t"
    assert cpu.platform("cuda -arch=sm_80") == ""


def test_a_machine_without_a_description(tmp_path: Path) -> None:
    cpu = this_cpu(tmp_path / "none")
    assert (cpu.model, cpu.generation) == ("unknown", "unknown")
