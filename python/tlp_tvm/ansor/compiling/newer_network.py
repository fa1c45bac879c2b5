"""A network that TVM built, its functions compiled by a newer LLVM, while TVM may be building the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.compiling.linking import Linked
from tlp_tvm.ansor.compiling.newer_llvm import BITCODE, bitcode_of, compiled_newly

_thread = ThreadPoolExecutor(1)
"""Compiles one network at a time."""


def is_compiled(built: Any) -> bool:
    """Wait until a network's functions are compiled; whether they could be.

    Args:
        built: what `relay.build` gave, or a `NewerNetwork`.
    """
    try:
        wait_for(built)
    except RuntimeError:
        return False
    return True


def wait_for(built: Any) -> None:
    """Wait until a network's functions are compiled.

    Args:
        built: as for `is_compiled`.

    Raises:
        RuntimeError: LLVM or the linker refuses them.
    """
    if isinstance(built, NewerNetwork):
        _ = built.functions


class NewerNetwork:
    """Stands in for what `relay.build` gave: run, profiled and exported alike."""

    def __init__(self, tvm: Any, built: Any, functions: Mapping[str, Linked] | None = None) -> None:
        """Begin to compile its functions.

        Args:
            tvm: the module.
            built: what `relay.build` gave for an `unoptimised` target.
            functions: those that programs compute which are compiled already, by name.
        """
        self._tvm, self._built = tvm, built
        self._compiling = _thread.submit(compiled_newly, tvm, bitcode_of(built.get_lib()), functions)

    @property
    def functions(self) -> Any:
        """TVM's module of the compiled functions.

        Raises:
            RuntimeError: LLVM or the linker refuses them.
        """
        return self._compiling.result()[0]

    @cached_property
    def _module(self) -> Any:
        built = self._built
        create = self._tvm.get_global_func("tvm.graph_executor_factory.create")
        parameters = [each for pair in built.get_params().items() for each in pair]
        return create(built.get_graph_json(), self.functions, built.libmod_name, *parameters)

    def __getitem__(self, name: str) -> Any:
        return self._module[name]

    def get_lib(self) -> Any:
        """TVM's own module of the functions, as LLVM's language."""
        return self._built.get_lib()

    def get_graph_json(self) -> str:
        """The graph of its operators."""
        return str(self._built.get_graph_json())

    def export_library(self, path: str, fcompile: Callable[..., Any]) -> None:
        """Write a library that loads without this class.

        Args:
            path: of the library.
            fcompile: links or packs object files, `(path, files)`.
        """

        def linked(target: str, files: Sequence[str], **_options: Any) -> None:
            fcompile(target, [self._in_the_place_of(file) for file in files])

        linked.object_format = BITCODE  # type: ignore[attr-defined] # TVM's LLVM need not compile the functions
        self._built.export_library(path, fcompile=linked, fpack_imports=self._packed_imports)

    def _in_the_place_of(self, file: str) -> str:
        """Our object file for TVM's bitcode; the parameters are in a file of their own."""
        if not file.endswith(f".{BITCODE}"):
            return file
        ours = Path(file).with_suffix(".o")
        ours.write_bytes(self._compiling.result()[1])
        return str(ours)

    def _packed_imports(self, module: Any, is_system_lib: bool, prefix: str, folder: str) -> str:
        library = self._built.get_lib()
        target = library.get_function("_get_target_string")()
        pack = self._tvm.get_global_func("runtime.ModulePackImportsToLLVM")
        path = str(Path(folder) / f"{prefix}devc.o")
        pack(module, is_system_lib, target, prefix).save(path)
        return path
