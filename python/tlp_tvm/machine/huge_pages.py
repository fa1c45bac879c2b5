"""Memory in pages of 2 MB, where Linux gives them to who asks.

A tuned network walks through all of its weights and activations in every run, more than the processor's table
of small pages holds. What cannot be had costs nothing: the memory stays as it is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

Range = tuple[int, int]
"""First address, and that behind the last."""

_PAGE = 1 << 21
_HUGEPAGE, _COLLAPSE = 14, 25
"""Of madvise(2); the first is a wish for what comes, the second (Linux 6.1) does it at once."""

_MAPS = Path("/proc/self/maps")


@contextmanager
def huge_pages() -> Iterator[None]:
    """Move memory that this process gets within the block, and keeps, into huge pages."""
    before = _own_memory()
    yield
    for begin, end in added(before, _own_memory()):
        _move(begin, end)


def added(before: Sequence[Range], after: Sequence[Range]) -> list[Range]:
    """What is new.

    Args:
        before: ranges in order, none within another.
        after: later ones.

    Returns:
        What `after` has and `before` has not.
    """
    found = []
    for begin, end in after:
        at = begin
        for known_begin, known_end in before:
            if known_begin < end and known_end > at:
                found.append((at, known_begin))
                at = known_end
        found.append((at, end))
    return [(begin, end) for begin, end in found if begin < end]


def _own_memory() -> list[Range]:
    """Ranges of private memory that belongs to no file, in order; none where the system does not say."""
    try:
        lines = _MAPS.read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        addresses, rights, _, _, _, *name = line.split()
        if rights == "rw-p" and name in ([], ["[heap]"]):
            begin, end = addresses.split("-")
            found.append((int(begin, 16), int(end, 16)))
    return found


def _move(begin: int, end: int) -> None:
    begin, end = -(-begin // _PAGE) * _PAGE, end // _PAGE * _PAGE
    if begin < end:
        madvise = ctypes.CDLL(None).madvise
        for advice in (_HUGEPAGE, _COLLAPSE):
            madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), advice)
