"""Compiled graphs on the disk, by the digest of all that they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tlp_tvm.files import user_cache, write_whole
from tlp_tvm.metaschedule.compiling.executables import save_compiled
from tlp_tvm.metaschedule.torch_compile.running import RunGraph

LIBRARY = "graph.so"
_PIECE = 1 << 22


def cache() -> Path:
    """Folder of all that is kept of graphs; it can be removed at any time."""
    return user_cache() / "torch"


def kept(digest: str) -> RunGraph | None:
    """A graph that was compiled before; None where there is none that loads."""
    folder = cache() / "graphs" / digest
    try:
        about = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
        if _digest(folder / LIBRARY) != about["library"]:  # to load half a library can end the process
            return None
        return RunGraph(folder / LIBRARY, about["results"], about["values"])
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None  # nothing there, or half of it: it is compiled anew


def keep(digest: str, built: Any, results: Sequence[int | None], values: Sequence[Any]) -> bool:
    """Write a graph, for later processes too; the description last, as it says that all is there.

    Args:
        digest: of all that it depends on.
        built: that `end_to_end.compiled` gave.
        results: as `Exported` has them.
        values: as `Exported` has them.

    Returns:
        Whether it is kept: not where one of the values cannot be written.
    """
    try:
        json.dumps(list(values))
    except TypeError:
        return False
    folder = cache() / "graphs" / digest
    folder.mkdir(parents=True, exist_ok=True)
    save_compiled(built, folder / LIBRARY)
    about = {"results": list(results), "values": list(values), "library": _digest(folder / LIBRARY)}
    write_whole(folder / "graph.json", json.dumps(about))
    return True


def _digest(file: Path) -> str:
    known = hashlib.blake2b(digest_size=16)
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            known.update(piece)
    return known.hexdigest()
