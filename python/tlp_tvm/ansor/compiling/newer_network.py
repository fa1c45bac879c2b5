"""A network that TVM built, its functions compiled by a newer LLVM, while TVM may be building the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.compiling.linking import Linked
from tlp_tvm.ansor.compiling.newer_llvm import BITCODE, bitcode_of, compiled_without, linked_with

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
    """Stands in for what `relay.build` gave: run, profiled and exported alike.

    Attributes:
        linked: its functions that programs compute which were compiled before, by name.
    """

    def __init__(
        self,
        tvm: Any,
        built: Any,
        functions: Mapping[str, Linked] | None = None,
        compiled: Future[bytes] | None = None,
    ) -> None:
        """Begin to compile its functions.

        Args:
            tvm: the module.
            built: what `relay.build` gave for an `unoptimised` target.
            functions: those that programs compute which are compiled already, by name.
            compiled: the others, where they were compiled before.
        """
        self._tvm, self._built, self.linked = tvm, built, dict(functions or {})
        if compiled is None:
            compiled = _thread.submit(compiled_without, self.linked, bitcode_of(built.get_lib()))
        self._compiled = compiled
        self._linking = _thread.submit(lambda: linked_with(tvm, self._compiled.result(), self.linked))

    @property
    def functions(self) -> Any:
        """TVM's module of the compiled functions.

        Raises:
            RuntimeError: LLVM or the linker refuses them.
        """
        return self._linking.result()[0]

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

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The network's parameters as its functions read them, by name."""
        found: Mapping[str, Any] = self._built.get_params()
        return found

    def with_programs(
        self, graph: str, parameters: Mapping[str, Any], functions: Mapping[str, Linked]
    ) -> NewerNetwork:
        """The same network, with other programs.

        Args:
            graph: of its operators.
            parameters: as the programs read them, by name.
            functions: the same as in `linked`, by other programs.
        """
        built = self._built
        of = (built.ir_mod, built.target, built.executor, graph, built.get_lib(), built.libmod_name)
        changed = type(built)(*of, dict(parameters), built.function_metadata)
        return NewerNetwork(self._tvm, changed, functions, self._compiled)

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
        ours.write_bytes(self._linking.result()[1])
        return str(ours)

    def _packed_imports(self, module: Any, is_system_lib: bool, prefix: str, folder: str) -> str:
        library = self._built.get_lib()
        target = library.get_function("_get_target_string")()
        pack = self._tvm.get_global_func("runtime.ModulePackImportsToLLVM")
        path = str(Path(folder) / f"{prefix}devc.o")
        pack(module, is_system_lib, target, prefix).save(path)
        return path
