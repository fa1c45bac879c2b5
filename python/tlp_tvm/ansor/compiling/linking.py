"""Functions of a network that are programs compiled before: how they are called, and linked."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tlp_tvm.ansor.compiling.kept_code import Code, arguments_of

_INPUT = re.compile(r"p(\d+)")
"""What TVM calls a function's inputs."""


class Linked(NamedTuple):
    """A function of a network.

    Attributes:
        code: that computes it.
        places: of the code's arguments among those of the function; negative ones count from its end.
    """

    code: Code
    places: tuple[int, ...]


def linked(code: Code, tensors: Sequence[Any]) -> Linked | None:
    """How a network calls a program.

    Args:
        code: of the program.
        tensors: TVM's, of the function in the network: what it reads, in any order, and what it writes.

    Returns:
        None where the function's tensors are not the program's.
    """
    reads = [_INPUT.fullmatch(str(tensor.op.name)) for tensor in tensors if not tensor.op.input_tensors]
    if arguments_of(tensors) != code.arguments or None in reads:
        return None
    written = len(tensors) - len(reads)
    return Linked(code, (*(int(each[1]) for each in reads if each), *range(-written, 0)))


def calls(functions: Mapping[str, Linked]) -> str:
    """LLVM's language of functions that call programs.

    Args:
        functions: of a network, by name.
    """
    programs = {each.code.name for each in functions.values()}
    declared = [f"declare i32 @{name}(ptr, ptr, i32, ptr, ptr, ptr)" for name in sorted(programs)]
    return "\n".join([*declared, *(_call(name, each) for name, each in functions.items())])


def _call(name: str, function: Linked) -> str:
    """TVM passes eight bytes of each argument, and four that say its kind."""
    count = len(function.places)
    lines = [
        f"define i32 @{name}(ptr %values, ptr %kinds, i32 %count, ptr %out, ptr %out_kind, ptr %resource) {{",
        f"  %v = alloca [{count} x i64]",
        f"  %k = alloca [{count} x i32]",
    ]
    for i, place in enumerate(function.places):
        lines.append(f"  %p{i} = add i32 {place}, {'%count' if place < 0 else 0}")
        for array, source, kind in (("v", "values", "i64"), ("k", "kinds", "i32")):
            lines += [
                f"  %{array}f{i} = getelementptr {kind}, ptr %{source}, i32 %p{i}",
                f"  %{array}x{i} = load {kind}, ptr %{array}f{i}",
                f"  %{array}t{i} = getelementptr {kind}, ptr %{array}, i32 {i}",
                f"  store {kind} %{array}x{i}, ptr %{array}t{i}",
            ]
    passed = f"ptr %v, ptr %k, i32 {count}, ptr %out, ptr %out_kind, ptr %resource"
    lines += [f"  %r = call i32 @{function.code.name}({passed})", "  ret i32 %r", "}"]
    return "\n".join(lines)


def joined(objects: Sequence[bytes], folder: Path) -> bytes:
    """One object file of several.

    Args:
        objects: object files; of functions that are in two, the first counts.
        folder: for files in between.

    Raises:
        RuntimeError: the linker refuses them.
    """
    files = [folder / f"{i}.o" for i in range(len(objects))]
    for file, each in zip(files, objects, strict=True):
        file.write_bytes(each)
    run_linker("-r", folder / "joined.o", files)
    return (folder / "joined.o").read_bytes()


def run_linker(way: str, result: Path, files: Sequence[Path]) -> None:
    """Link object files.

    Args:
        way: "-r" to an object file, "-shared" to a library.
        result: the file to write.
        files: to link.

    Raises:
        RuntimeError: it refuses them.
    """
    found = subprocess.run(
        ["ld", way, "-o", str(result), *map(str, files)], capture_output=True, text=True, check=False
    )
    if found.returncode:
        said = " ".join(found.stderr.split())
        raise RuntimeError(
            f"expected functions that ld links, found: {said}; without llvmlite, TVM's own LLVM compiles"
        )
