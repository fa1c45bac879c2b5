"""Is this machine ready? Each check says what it found, and the cure where something is wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tlp_tvm.ansor.compiling.newer_llvm import newer_llvm
from tlp_tvm.ansor.loading.locate import load_tvm, tvm_info
from tlp_tvm.ansor.loading.self_check import check_layout
from tlp_tvm.machine.checks import Check, run_check, torch_check
from tlp_tvm.machine.core_distance import round_trip
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.measuring.code_kinds import IN_PARTS, PREFETCHING

_CHILD_TIMEOUT = 120
"""Seconds that a child may take to import TVM."""


def diagnose() -> list[Check]:
    """Run every check; those that need a TVM only if there is one."""
    checks = [run_check("TVM", _tvm)]
    if checks[0].ok:
        checks += [run_check(name, check) for name, check in _WITH_TVM.items()]
    return checks + [run_check(name, check) for name, check in _WITHOUT_TVM.items()]


def _tvm() -> tuple[str, str]:
    info = tvm_info()
    hint = f"passed over: {info.passed_over}" if info.passed_over else ""
    return f"{info.version}, {info.source}, {info.python}", hint


def _library() -> tuple[str, str]:
    info = tvm_info()
    stand_ins = f", with stand-ins for {', '.join(info.stand_ins)}" if info.stand_ins else ""
    return f"{info.library}{stand_ins}", ""


def _layout() -> tuple[str, str]:
    report = check_layout(load_tvm())
    return f"{len(report.kinds)} kinds, {report.steps} steps in {report.states} states as TVM writes them", ""


def _child() -> tuple[str, str]:
    load_tvm()
    from tvm.contrib.popen_pool import PopenWorker

    def imported() -> str:  # nested, so that it travels by value: the child needs TVM only
        import tvm

        return str(tvm._ffi.base._LIB._name)

    worker = PopenWorker(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        worker.send(imported, timeout=_CHILD_TIMEOUT)
        library = worker.recv()
    except Exception as error:
        raise RuntimeError(
            f"a child process of TVM failed to import it ({type(error).__name__}: {error}); "
            "unset PYTHONPATH and LD_LIBRARY_PATH, or let them lead to one TVM only"
        ) from error
    finally:
        worker.kill()
    if not Path(library).samefile(tvm_info().library):
        raise RuntimeError(
            f"expected a child process to load {tvm_info().library}, found {library}; unset TVM_LIBRARY_PATH"
        )
    return "imports the same TVM", ""


def _kernel() -> tuple[str, str]:
    tvm = load_tvm()
    target = this_cpu().target
    a = tvm.te.placeholder((64,), name="a")
    b = tvm.te.compute((64,), lambda i: a[i] + 1.0, name="b")
    function = tvm.build(tvm.te.create_schedule(b.op), [a, b], target)
    argument, result = (tvm.nd.array(np.arange(64, dtype=np.float32)) for _ in range(2))
    function(argument, result)
    if not np.array_equal(result.numpy(), argument.numpy() + 1):
        raise RuntimeError(f"a kernel compiled for {target} computes wrong results; choose another -mcpu")
    newer = newer_llvm(tvm)
    hint = "" if newer else "programs run some percent slower than with a newer LLVM: pip install llvmlite"
    compiler = f"LLVM {tvm.target.codegen.llvm_version_major()}"
    if newer:
        compiler += f", in searches {newer.removesuffix(PREFETCHING + IN_PARTS).replace('llvm-', 'LLVM ')}"
    return f"compiled by {compiler} and run for {target}", hint


def _networks() -> tuple[str, str]:
    load_tvm()
    try:
        import tvm.relay.testing  # noqa: F401
    except ImportError as error:
        raise RuntimeError(f"tvm.relay.testing does not import ({error}); install tlp-tvm[ansor]") from error
    return "the built-in ones can be built", ""


def _gpu() -> tuple[str, str]:
    tvm, info = load_tvm(), tvm_info()
    if tvm.cuda().exist:
        return f"{tvm.cuda().device_name}, CUDA", ""
    if not Path("/proc/driver/nvidia").exists():
        return "none: programs run on the CPU", ""
    cure = "use a TVM built with CUDA"
    if {"libcudart.so.12", "libnvrtc.so.12"} & set(info.stand_ins):
        cure = "pip install nvidia-cuda-runtime-cu12 nvidia-cuda-nvrtc-cu12"
    return "an NVIDIA driver, but TVM cannot use it", f"to tune for the GPU, {cure}"


def _cpu() -> tuple[str, str]:
    cpu = this_cpu()
    hint = "" if cpu.mcpu else 'no x86-64 vector extensions known: name them yourself, "llvm -mcpu=..."'
    platform = cpu.platform(cpu.target) or "unknown"
    between = round_trip(cpu.cores)
    apart = f" ({between * 1e6:.2f} us from one to another and back)" if between else ""
    return f"{cpu.model}, {cpu.cores} cores{apart}, platform {platform}, target {cpu.target}", hint


_WITH_TVM: dict[str, Callable[[], tuple[str, str]]] = {
    "library": _library,
    "object layout": _layout,
    "child process": _child,
    "kernel": _kernel,
    "networks": _networks,
    "GPU": _gpu,
}
_WITHOUT_TVM: dict[str, Callable[[], tuple[str, str]]] = {"CPU": _cpu, "torch": torch_check}
