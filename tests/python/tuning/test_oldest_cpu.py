"""The quickstart's first steps on the oldest processor that has a name here: SSE 4.2, no AVX."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import succeed
from tlp_tvm.ansor.loading import diagnosis
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.machine.cpu import Cpu, this_cpu


@pytest.fixture
def oldest(tmp_path: Path) -> Cpu:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(
        "model name\t: Intel(R) Xeon(R) CPU X5570\nflags\t\t: fpu sse sse2 ssse3 sse4_1 sse4_2\n"
    )
    return this_cpu(cpuinfo)


def assembly(target: str) -> str:
    """Of a kernel that adds vectors."""
    tvm = load_tvm()
    a = tvm.te.placeholder((64,), name="a")
    b = tvm.te.compute((64,), lambda i: a[i] + 1.0, name="b")
    schedule = tvm.te.create_schedule(b.op)
    schedule[b].vectorize(schedule[b].split(b.op.axis[0], 8)[1])
    return str(tvm.build(schedule, [a, b], target).get_source("asm"))


def test_doctor_runs_a_kernel_for_it(oldest: Cpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "this_cpu", lambda: oldest)
    checks = {check.name: check for check in diagnosis.diagnose()}
    assert checks["kernel"].ok, checks["kernel"]
    assert checks["kernel"].found.endswith(f"run for llvm -mcpu=nehalem -num-cores={oldest.cores}")
    assert "X5570" in checks["CPU"].found


def test_a_network_is_tuned_for_it(oldest: Cpu, tmp_path: Path) -> None:
    assert oldest.mcpu == "nehalem"
    assert "ymm" not in assembly(oldest.target)
    assert "ymm" in assembly("llvm -mcpu=core-avx2")
    out = tmp_path / "run"
    printed = succeed("tune", "mlp", "--trials", 4, "--out", out, "--target", oldest.target, "--json")
    value = json.loads(printed)
    assert value["trials"] == 4
    assert value["end_to_end"]["speedup"] > 0
    records = [json.loads(line) for line in (out / "log.json").read_text().splitlines()]
    assert len(records) == 4
    assert all("-mcpu=nehalem" in record["i"][0][1] and record["r"][1] == 0 for record in records)
