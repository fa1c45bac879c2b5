"""What `tlp-tvm doctor` looks at where the TVM is one with MetaSchedule."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from tlp_tvm.machine.checks import Check, run_check, torch_check
from tlp_tvm.metaschedule.loading.locate import load_tvm, tvm_info


def diagnose() -> list[Check]:
    """Run every check; those that need a TVM only if there is one."""
    checks = [run_check("TVM", _tvm)]
    if checks[0].ok:
        checks += [run_check(name, check) for name, check in _WITH_TVM.items()]
    return [*checks, run_check("torch", torch_check)]


def _tvm() -> tuple[str, str]:
    info = tvm_info()
    return f"{info.version}, apache-tvm-ffi {info.ffi_version}, {info.python}", ""


def _search() -> tuple[str, str]:
    from tlp_tvm.metaschedule.networks.workloads import TARGETS, workload
    from tlp_tvm.metaschedule.search.sampling import sample_traces

    designs = {str(program.mod) for program in sample_traces(workload("matmul"), TARGETS["llvm"], 8)}
    return f"{len(designs)} different programs of a matmul sampled", ""


def _reader() -> tuple[str, str]:
    """What is read natively equals what TVM writes."""
    from tlp_tvm import _core
    from tlp_tvm.metaschedule.networks.workloads import TARGETS, workload
    from tlp_tvm.metaschedule.reading import traces
    from tlp_tvm.metaschedule.search.sampling import sample_traces

    count = 0
    for target in TARGETS.values():
        programs = sample_traces(workload("conv2d"), target, 6)
        text = "\n".join(traces.json_of(program) for program in programs)
        block = _core.read_traces(text.encode(), "<TVM>", 1, "trace", False)
        if traces.steps(programs) != [block.steps(i) for i in range(len(block))]:
            raise RuntimeError(
                'traces read natively differ from what TVM writes; extract with route="json", and report this'
            )
        count += int(block.lengths().sum())
    return f"{count} instructions read as TVM writes them", ""


def _kernel() -> tuple[str, str]:
    tvm = load_tvm()
    from tvm import te

    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="b")
    function = tvm.compile(te.create_prim_func([a, b]), tvm.target.Target({"kind": "llvm"}))
    argument, result = (tvm.runtime.tensor(np.arange(64, dtype=np.float32)) for _ in range(2))
    function(argument, result)
    if not np.array_equal(result.numpy(), argument.numpy() + 1):
        raise RuntimeError("a kernel compiled for llvm computes wrong results; install apache-tvm again")
    target = json.loads(str(tvm.target.Target({"kind": "llvm"})))
    return f"compiled and run for {target.get('mtriple', 'llvm')}", ""


def _gpu() -> tuple[str, str]:
    device = load_tvm().cuda()
    return (f"{device.device_name}, CUDA" if device.exist else "none: programs run on the CPU"), ""


_WITH_TVM: dict[str, Callable[[], tuple[str, str]]] = {
    "design spaces": _search,
    "trace reader": _reader,
    "kernel": _kernel,
    "GPU": _gpu,
}
