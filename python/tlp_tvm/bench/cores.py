"""The cores of a benchmark."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def cores(threads: int) -> Iterator[int]:
    """Limit this process and torch to some cores; TVM's and our native threads follow."""
    import torch

    allowed = sorted(os.sched_getaffinity(0))
    chosen = allowed[: threads or None]
    before = torch.get_num_threads()
    os.sched_setaffinity(0, chosen)
    torch.set_num_threads(len(chosen))
    try:
        yield len(chosen)
    finally:
        torch.set_num_threads(before)
        os.sched_setaffinity(0, allowed)
