"""Machine code by an LLVM of today, in the place of the one inside TVM.

The wheel that TVM comes in has the LLVM of 2020. It keeps sums of a matrix product in memory while there are
registers for them, and knows no processor of after 2019. `llvmlite` brings a new one: TVM's functions go to
it as TVM wrote them, none of the old one's passes run, and the linker makes a library of what it gives.
"""

from __future__ import annotations

import functools
import re
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.compiling.linking import Linked, calls, joined, run_linker
from tlp_tvm.ansor.compiling.register_tiles import with_whole_steps
from tlp_tvm.measuring.code_kinds import IN_PARTS, PREFETCHING, is_tvms_own

_SPEED = 2
"""LLVM's level of optimisation; at 3, it takes a fifth longer for programs that are no faster."""

BITCODE = "bc"
"""Ends the name of a file of it, and tells TVM what to write."""

_CPU = '"target-cpu"="'
_LINE = re.compile(r",? !dbg !\d+")
"""What says for a debugger where an instruction is from."""

_PREFETCH = re.compile(r"call void @llvm\.prefetch\.[^\n]*\)")
_READS_NOTHING = r"\g<0> memory(inaccessiblemem: readwrite)"
"""Said of a prefetch, which LLVM takes for a read of whatever array may be there: it would write the sums
of a product into memory before each."""


@functools.cache
def newer_llvm(tvm: Any) -> str:
    """What code of it is called in runs and logs, "llvm-22-prefetching-in-parts".

    Args:
        tvm: the module.

    Returns:
        Empty where there is none, or none that reads what this TVM writes, or no linker.
    """
    try:
        from llvmlite import binding
    except ImportError:
        return ""
    version = int(binding.llvm_version_info[0])
    return (
        f"llvm-{version}{PREFETCHING}{IN_PARTS}" if shutil.which("ld") and _writes_for(tvm, version) else ""
    )


def _writes_for(tvm: Any, version: int) -> bool:
    """Whether TVM can leave its functions unoptimised, in the bitcode of an LLVM that is no newer."""
    try:
        unoptimised(tvm, tvm.target.Target("llvm"))
        return bool(tvm.target.codegen.llvm_version_major() <= version)
    except Exception:  # noqa: BLE001 - old ones know neither, and say so in many ways
        return False


def is_newer(code: str) -> bool:
    """Whether programs are compiled so by an LLVM that is not TVM's.

    Args:
        code: as `MeasureSettings` has it.
    """
    return not is_tvms_own(code)


def unoptimised(tvm: Any, target: Any) -> Any:
    """The same target, for which TVM's own LLVM changes nothing.

    Args:
        tvm: the module.
        target: for a CPU.
    """
    return tvm.target.Target({**target.export(), "opt-level": 0})


def bitcode_of(library: Any) -> bytes:
    """The functions that TVM built, in LLVM's language.

    TVM's own LLVM writes it, and may be asked by one thread at a time.

    Args:
        library: TVM's module of kind "llvm".
    """
    with tempfile.TemporaryDirectory(prefix="tlp-tvm-") as folder:
        file = Path(folder) / f"functions.{BITCODE}"
        library.save(str(file))
        return file.read_bytes()


def compiled_newly(tvm: Any, bitcode: bytes) -> tuple[Any, bytes]:
    """Compile what TVM built for an `unoptimised` target.

    Args:
        tvm: the module.
        bitcode: of the functions.

    Returns:
        TVM's module of the same functions, and the object file that it was linked from.

    Raises:
        RuntimeError: LLVM or the linker refuses it.
    """
    return linked_with(tvm, compiled_without((), bitcode), {})


def compiled_without(functions: Collection[str], bitcode: bytes) -> bytes:
    """Compile what TVM built for an `unoptimised` target, but for some functions.

    Args:
        functions: those that are left out.
        bitcode: of all.

    Returns:
        An object file.

    Raises:
        RuntimeError: LLVM refuses it.
    """
    return _object_of(_without(functions, bitcode) if functions else bitcode)


def linked_with(tvm: Any, compiled: bytes, functions: Mapping[str, Linked]) -> tuple[Any, bytes]:
    """Link a network.

    Args:
        tvm: the module.
        compiled: that `compiled_without` gave.
        functions: those that were left out, and the programs that compute them.

    Returns:
        TVM's module of all functions, and the object file that it was linked from.

    Raises:
        RuntimeError: LLVM or the linker refuses it.
    """
    with tempfile.TemporaryDirectory(prefix="tlp-tvm-") as name:
        folder = Path(name)
        code = compiled
        if functions:
            programs = {each.code.name: each.code.object_file for each in functions.values()}
            code = joined([compiled, _calls(functions), *programs.values()], folder)
        file = folder / "functions.o"
        file.write_bytes(code)
        run_linker("-shared", folder / "functions.so", [file])
        # the file is not needed once it is loaded
        return tvm.runtime.load_module(str(folder / "functions.so")), code


def _without(functions: Collection[str], bitcode: bytes) -> bytes:
    """The same without some functions, which LLVM drops, as nobody can call them."""
    from llvmlite import binding

    module = binding.parse_bitcode(bitcode)
    for name in functions:
        found = module.get_function(name)
        found.storage_class, found.linkage = "default", "internal"
        found.name = f"{name}_by_tvm"
    return bytes(module.as_bitcode())


def _calls(functions: Mapping[str, Linked]) -> bytes:
    """The object file of functions that call programs."""
    from llvmlite import binding

    triple = binding.get_process_triple()
    module = binding.parse_assembly(f'target triple = "{triple}"\n{calls(functions)}')
    return bytes(_machine(triple).emit_object(module))


def _object_of(bitcode: bytes) -> bytes:
    module = optimised(bitcode)
    return bytes(_machine(module.triple).emit_object(module))


def optimised(bitcode: bytes) -> Any:
    """What LLVM makes of functions before it chooses instructions.

    Args:
        bitcode: of the functions.

    Returns:
        A module of `llvmlite.binding`.

    Raises:
        RuntimeError: LLVM refuses it.
    """
    from llvmlite import binding

    module = binding.parse_assembly(_tuned_here(str(binding.parse_bitcode(bitcode))))
    options = binding.create_pipeline_tuning_options(speed_level=_SPEED)
    options.slp_vectorization = True
    builder = binding.create_pass_builder(_machine(module.triple), options)
    builder.getModulePassManager().run(module, builder)
    return module


def _tuned_here(text: str) -> str:
    """The same functions, to be ordered for this processor, in vectors as wide as the target's."""
    from llvmlite import binding

    tuning = f'"tune-cpu"="{binding.get_host_cpu_name()}" "prefer-vector-width"="512" '
    text = _LINE.sub("", text).replace(_CPU, tuning + _CPU)
    return with_whole_steps(_PREFETCH.sub(_READS_NOTHING, text))


@functools.cache
def _machine(triple: str) -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_triple(triple).create_target_machine(opt=_SPEED, reloc="pic")
