"""New memory, and only that, is moved into huge pages; what is in it stays."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from tlp_tvm.machine import huge_pages

MEGABYTE = 1 << 20


def test_what_is_new() -> None:
    before = [(10, 20), (30, 40), (90, 99)]
    assert huge_pages.added(before, before) == []
    assert huge_pages.added(before, [(10, 20), (25, 45), (50, 60)]) == [(25, 30), (40, 45), (50, 60)]
    assert huge_pages.added(before, [(5, 50)]) == [(5, 10), (20, 30), (40, 50)]
    assert huge_pages.added([], [(1, 2)]) == [(1, 2)]
    assert huge_pages.added(before, []) == []


def test_new_memory_is_moved_and_keeps_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[tuple[int, int]] = []
    move = huge_pages._move

    def note(begin: int, end: int) -> None:
        moved.append((begin, end))
        move(begin, end)

    def numbers() -> np.ndarray:
        private = mmap.mmap(-1, 8 * MEGABYTE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        found = np.frombuffer(private, dtype=np.int64)
        found[:] = np.arange(len(found))
        return found

    def is_moved(array: np.ndarray) -> bool:
        middle = array.ctypes.data + array.nbytes // 2
        return any(begin <= middle < end for begin, end in moved)

    monkeypatch.setattr(huge_pages, "_move", note)
    old = numbers()
    with huge_pages.huge_pages():
        new = numbers()
    assert (is_moved(old), is_moved(new)) == (False, True)
    for array in (old, new):
        np.testing.assert_array_equal(array, np.arange(len(array)))


def test_a_system_that_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huge_pages, "_MAPS", huge_pages.Path("/nowhere"))
    monkeypatch.setattr(huge_pages, "_move", lambda *_: pytest.fail("nothing is known to be new"))
    with huge_pages.huge_pages():
        bytearray(8 * MEGABYTE)
