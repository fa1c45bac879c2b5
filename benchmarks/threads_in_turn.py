"""Searches that each block a thread of their own: one runs, and the others wait for its round to end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np


class Searching:
    """One search: what it has measured, and the seconds of its own turns.

    Attributes:
        name: of the contender.
        measured: (workload key, seconds, record line) of each program, in order.
        clock: seconds of its own turns at each of them.
    """

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.measured: list[tuple[str, float, str]] = []
        self.clock: list[float] = []
        self._seconds = self._began = 0.0
        self._random = np.random.RandomState(seed).get_state()

    def resume(self) -> None:
        """Its turn begins."""
        self._others = np.random.get_state()  # noqa: NPY002
        np.random.set_state(self._random)  # noqa: NPY002
        self._began = time.perf_counter()

    def pause(self) -> None:
        """Its turn ends."""
        self._seconds += time.perf_counter() - self._began
        self._random = np.random.get_state()  # noqa: NPY002
        np.random.set_state(self._others)  # noqa: NPY002

    def note(self, key: str, latency: float, line: str) -> None:
        """A program was measured in its turn."""
        self.measured.append((key, latency, line))
        self.clock.append(self._seconds + time.perf_counter() - self._began)


class Turns:
    """Whose turn it is: of those that wait, the one that has measured fewest programs."""

    def __init__(self, searches: Sequence[Searching]) -> None:
        self._open = list(searches)
        self._waiting = 0
        self._changed = threading.Condition()
        self.holder: Searching | None = None

    def run(self, work: Callable[[Searching], Any], done: Callable[[Searching], None]) -> None:
        """Run all to their ends.

        Args:
            work: a search; calls `next_round` before each of its rounds.
            done: called as a search's turn ends.

        Raises:
            Exception: what a search raised, once all have ended.
        """
        self._done, searches = done, tuple(self._open)

        def begin(search: Searching) -> None:
            self.next_round(search)
            try:
                work(search)
            finally:
                self._leave(search)

        with ThreadPoolExecutor(len(searches)) as threads:
            futures = [threads.submit(begin, search) for search in searches]
        for future in futures:
            future.result()

    def next_round(self, search: Searching) -> None:
        """End a search's turn, and come back when its next begins."""
        with self._changed:
            self._end_of(search)
            self._waiting += 1
            self._hand_over()
            self._changed.wait_for(lambda: self.holder is search)
        search.resume()

    def _leave(self, search: Searching) -> None:
        with self._changed:
            self._end_of(search)
            self._open.remove(search)
            self._hand_over()

    def _end_of(self, search: Searching) -> None:
        if self.holder is search:
            search.pause()
            self._done(search)
            self.holder = None

    def _hand_over(self) -> None:
        if self._open and self._waiting == len(self._open):
            self.holder = min(self._open, key=lambda each: len(each.measured))
            self._waiting -= 1
            self._changed.notify_all()
