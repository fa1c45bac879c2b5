"""Targets: what they name, what is known of their hardware, and whether this machine runs them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.errors import TuningError, last_line_of
from tlp_tvm.machine.cpu import this_cpu

_VECTORS = ("avx", "avx2", "fma", "f16c", "bmi2", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")
"""Extensions that LLVM and the kernel call by the same name, and that compiled programs are full of."""


def target_of(text: str, *, here: bool = True) -> Any:
    """A target to measure on.

    Args:
        text: TVM target; empty for this machine's CPU.
        here: whether this machine must have a device of that kind.

    Returns:
        TVM target.

    Raises:
        TuningError: no such target, none of this machine, or a CPU unknown to LLVM.
    """
    tvm = load_tvm()
    text = text or this_cpu().target
    try:
        target = tvm.target.Target(text)
    except (tvm.TVMError, ValueError) as error:
        raise TuningError(
            f'`target` "{text}": expected a TVM target such as "{this_cpu().target}", found: '
            f"{last_line_of(error)}"
        ) from error
    _check_mcpu(tvm, text, target)
    if here and not tvm.device(str(target.kind.name), 0).exist:
        raise TuningError(
            f'`target` "{text}": expected a device of this machine to measure on, found no {target.kind.name}'
        )
    return target


def _check_mcpu(tvm: Any, text: str, target: Any) -> None:
    """For a CPU that its LLVM does not know, TVM takes a generic one, at a fraction of the speed."""
    mcpu = str(target.attrs.get("mcpu", ""))
    list_known = getattr(tvm.target.codegen, "llvm_get_cpu_archlist", None)  # not in older TVMs
    if target.kind.name != "llvm" or not mcpu or list_known is None:
        return
    triple = f" -mtriple={target.attrs['mtriple']}" if "mtriple" in target.attrs else ""
    if mcpu not in {str(name) for name in list_known(tvm.target.Target(f"llvm{triple}"))}:
        raise TuningError(
            f'`target` "{text}": expected a -mcpu that LLVM {tvm.target.codegen.llvm_version_major()} knows, '
            f'found "{mcpu}"; for this machine choose `target` "{this_cpu().target}"'
        )


def hardware_of(target: Any) -> Any:
    """`HardwareParams` with the cores that a CPU target names; None for other targets.

    TVM itself counts half the cores of an x86 machine, whatever the target says.

    Args:
        target: TVM target.
    """
    if target.kind.name != "llvm" or "num-cores" not in target.attrs:
        return None
    return load_tvm().auto_scheduler.HardwareParams(int(target.attrs["num-cores"]), 64, 64, 0, 0, 0, 0, 0)


def cores_of(target: Any) -> int:
    """How many cores a target names, or else this process has.

    Args:
        target: TVM target.
    """
    return int(target.attrs.get("num-cores", 0)) or this_cpu().cores


@contextmanager
def quiet_builds() -> Iterator[None]:
    """Silence TVM's advice, operator by operator, to tune the network that is being tuned."""
    scope = load_tvm().autotvm.GLOBAL_SCOPE
    silent, scope.silent = scope.silent, True
    loggers = [logging.getLogger(name) for name in ("strategy", "te_compiler", "autotvm", "auto_scheduler")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        scope.silent = silent
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


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
