"""TVM's targets are dictionaries now; platforms of models are named by the flags of old."""

from __future__ import annotations

import json
from typing import Any

from tlp_tvm.errors import TuningError, last_line_of
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.metaschedule.loading.locate import load_runtime

SHOWN = ("mcpu", "mattr", "arch", "num-cores")
"""What tells platforms apart, in the order it is written."""


def flags_of(target: Any) -> str:
    """A target as TVM wrote it up to 0.19, e.g. "llvm -mcpu=znver2 -num-cores=4".

    Args:
        target: `tvm.target.Target`, or its JSON.
    """
    entries = json.loads(str(target))
    flags = [str(entries["kind"])]
    for name in SHOWN:
        value = entries.get(name)
        if value in (None, "", []):
            continue
        flags.append(f"-{name}={','.join(value) if isinstance(value, list) else value}")
    return " ".join(flags)


def target_of(text: str, *, here: bool = True) -> Any:
    """A target to measure on.

    Args:
        text: in flags ("llvm -mcpu=core-avx2 -num-cores=2") or as TVM's JSON; empty for this machine's CPU.
        here: whether this machine must have a device of that kind.

    Returns:
        TVM target.

    Raises:
        TuningError: no such target, none of this machine, or a CPU unknown to LLVM.
    """
    tvm = load_runtime()
    cure = f'choose `target` "{this_cpu().target}" for this machine'
    try:
        target = tvm.target.Target(_entries_of(text or this_cpu().target))
    except Exception as error:
        raise TuningError(
            f'`target` "{text}": expected a TVM target, found: {last_line_of(error)}; {cure}'
        ) from error
    kind, mcpu = str(target.kind.name), str(target.attrs.get("mcpu", ""))
    if kind == "llvm" and mcpu and mcpu not in map(str, tvm.target.codegen.llvm_get_cpu_archlist(target)):
        raise TuningError(
            f'`target` "{text}": expected a -mcpu that LLVM '
            f'{tvm.target.codegen.llvm_version_major()} knows, found "{mcpu}"; {cure}'
        )
    if here and not device_of(kind).exist:
        raise TuningError(
            f'`target` "{text}": expected a device of this machine to measure on, found no {kind}; {cure}'
        )
    return target


def target_from_json(text: str) -> Any:
    """The target that `str(target)` is of."""
    entries = json.loads(text)
    return load_runtime().target.Target(
        {name: value for name, value in entries.items() if value not in ("", [])}
    )


def cores_of(target: Any) -> int:
    """How many cores a target names, or else this process has."""
    return int(target.attrs.get("num-cores", 0)) or this_cpu().cores


def device_of(kind: str) -> Any:
    """The first device that runs programs of a kind of target ("llvm", "cuda")."""
    return load_runtime().device("cpu" if kind in ("llvm", "c") else kind, 0)


def _entries_of(text: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        entries: dict[str, Any] = json.loads(text)
        return entries
    kind, *flags = text.split()
    found: dict[str, Any] = {"kind": kind}
    for flag in flags:
        name, equals, value = flag.removeprefix("-").partition("=")
        if not flag.startswith("-") or not equals:
            raise ValueError(f'expected flags such as -num-cores=2, found "{flag}"')
        if name == "mattr":
            found[name] = value.split(",")
        else:
            found[name] = int(value) if value.isdigit() else value
    return found
