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


def test_a_machine_without_a_description(tmp_path: Path) -> None:
    assert this_cpu(tmp_path / "none").model == "unknown"
