"""The house stands as docs/architecture.md draws it; what is checked are the imports themselves."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import ROOT, TESTS

PACKAGE = ROOT / "python" / "tlp_tvm"

FLOORS = (
    ("_core", "errors", "files", "logs", "folder_lock", "latency", "network_names"),
    ("layout", "embedding"),
    ("record_batch", "planned_task"),
    ("pretrained", "machine", "metrics", "lowered"),
    ("model",),
    ("adapting",),
    ("breeding",),
    ("measuring",),
    ("framework",),
    ("records",),
    ("dataset",),
    ("tuning",),
    ("beside",),
    ("training",),
    ("evaluation",),
    ("collection",),
    ("comparison",),
    ("pages",),
    ("bench",),
    ("ansor", "metaschedule"),
    ("features", ""),
    ("cli",),
)
"""From the ground up; rooms of one floor do not know each other. "" is `tlp_tvm/__init__.py`."""

FLOOR_OF = {room: i for i, rooms in enumerate(FLOORS) for room in rooms}
LEAVES = ("ansor", "metaschedule")
MOST_FILES, MOST_LINES, MOST_LINES_OF_A_FUNCTION = 12, 400, 60
NAMED_FOR_COMMANDS = "cli"


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_of(path: Path) -> Iterator[str]:
    """Modules that a file imports, at once, late or for its types; ours without "tlp_tvm."."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("tlp_tvm.") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tlp_tvm":
            base = node.module.removeprefix("tlp_tvm").removeprefix(".")
            for alias in node.names:
                whole = f"{base}.{alias.name}".removeprefix(".")
                yield whole if whole in MODULES else base or alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


IMPORTS = {name: set(imports_of(path)) for name, path in MODULES.items()}


def ours(name: str) -> set[str]:
    return {found for found in IMPORTS[name] if found in MODULES and found}


def room(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


def test_every_room_has_a_floor() -> None:
    assert {room(name) for name in MODULES} - set(FLOOR_OF) == set()


def test_imports_only_go_down() -> None:
    """Files of the lowest rooms stand alone and may know each other."""
    up = {
        (name, found)
        for name in MODULES
        for found in ours(name)
        if room(found) != room(name) and FLOOR_OF[room(found)] > FLOOR_OF[room(name)]
    }
    assert up == set()


def test_no_imports_run_in_a_circle() -> None:
    waiting = {name: ours(name) for name in MODULES}
    while free := [name for name, needs in waiting.items() if not needs & set(waiting) - {name}]:
        for name in free:
            del waiting[name]
    assert waiting == {}


def test_nobody_imports_a_leaf_nor_tvm() -> None:
    """But the leaves themselves, each its own; framework.py finds them by name."""
    found = {
        (name, imported)
        for name in MODULES
        for imported in IMPORTS[name]
        if room(imported) in (*LEAVES, "tvm") and room(name) not in (*LEAVES, room(imported))
    }
    assert found == set()


def test_no_leaf_imports_the_other() -> None:
    leaves = [name for name in MODULES if room(name) in LEAVES]
    found = {
        (name, imported)
        for name in leaves
        for imported in IMPORTS[name]
        if room(imported) in LEAVES and room(imported) != room(name)
    }
    assert found == set()


def test_which_framework_it_is_is_asked_in_one_place() -> None:
    for name, path in MODULES.items():
        if name == "framework":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            keys = node.keys if isinstance(node, ast.Dict) else []
            literals = {each.value for each in [*compared, *keys] if isinstance(each, ast.Constant)}
            assert not literals & set(LEAVES), f"{path}:{getattr(node, 'lineno', 0)}"


def sources() -> list[Path]:
    return [*MODULES.values(), *TESTS.rglob("*.py")]


def test_rooms_are_small() -> None:
    files = Counter(
        path.parent for path in sources() if path.name.startswith("test_") or PACKAGE in path.parents
    )
    files.subtract(path.parent for path in MODULES.values() if path.name == "__init__.py")
    assert {str(folder): count for folder, count in files.items() if count > MOST_FILES} == {}


@pytest.mark.parametrize("suffix", ["*.py", "*.cc", "*.h"])
def test_files_are_small(suffix: str) -> None:
    for folder in ("python", "cpp", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob(suffix):
            assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES, path


@pytest.mark.parametrize("folder", ["python", "tests", "benchmarks", "examples"])
def test_functions_are_short(folder: str) -> None:
    """By their bodies: a command's signature is as long as its options are many."""
    long = []
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                if lines > MOST_LINES_OF_A_FUNCTION:
                    long.append(f"{path}:{node.lineno}: {node.name}: {lines} lines")
    assert long == []


def test_a_name_stands_once_unless_the_leaves_mirror_each_other() -> None:
    places: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        if path.name != "__init__.py" and room(name) != NAMED_FOR_COMMANDS:
            places.setdefault(path.stem, []).append(name)
    for stem, found in places.items():
        neutral = [name for name in found if room(name) not in LEAVES]
        assert len(neutral) <= 1, found
        assert stem == "framework" or not (neutral and len(found) > 1), found
        mirrored = {name.partition(".")[2] for name in found if name not in neutral}
        assert len(mirrored) <= 1, found


def test_the_tests_have_the_same_rooms() -> None:
    rooms = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.is_dir()}
    found = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    assert found - rooms - {Path()} == set()
