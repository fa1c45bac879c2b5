"""Writing whole files or nothing."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write `data` to a new name in the same folder and rename it: readers see the old file or the new."""
    target = Path(path)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        fresh.write_bytes(data.encode() if isinstance(data, str) else data)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
