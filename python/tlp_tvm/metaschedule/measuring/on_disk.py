"""TVM's databases, brought to the disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from tlp_tvm.tuning.tune_progress import Progress, not_written


def bring_to_disk(files: Sequence[Path], progress: Progress) -> None:
    """Bring what TVM wrote to its database to the disk; TVM itself checks no write.

    Args:
        files: of the database.
        progress: keeps the error.

    Raises:
        TuningError: one of them ends with half a line.
    """
    for file in files:
        try:
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                opened.seek(max(0, os.fstat(opened.fileno()).st_size - 1))
                whole = opened.read() in (b"", b"\n")
            if not whole:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
        except OSError as error:
            progress.error = not_written(file, error)
            raise progress.error from error
