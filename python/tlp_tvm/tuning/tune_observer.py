"""Progress of a tuning, for the command line or any caller."""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class TuneObserver:
    """Told how a tuning goes; does nothing with it. Methods are called from the tuning's thread."""

    def step(self, name: str) -> None:
        """A step begins.

        Args:
            name: in words, e.g. "building the network without records".
        """

    def planned(self, tasks: int, trials: int, reused: int) -> None:
        """The search is about to begin.

        Args:
            tasks: of the network.
            trials: programs to measure in all.
            reused: how many of them the log already has.
        """

    def warmed(self, used: int, passed_over: int) -> None:
        """Earlier logs were read.

        Args:
            used: programs of the same tasks and target.
            passed_over: programs of others.
        """

    def round(self, task: str) -> None:
        """A round of the search begins.

        Args:
            task: TVM's description of the task.
        """

    def measured(self, trials: int, estimate: float, failures: Mapping[str, int]) -> None:
        """A program was measured.

        Args:
            trials: programs measured in all.
            estimate: weighted sum of the tasks' best so far, seconds; infinity while a task has none.
            failures: reason to how many programs failed for it.
        """


class Steps:
    """Tells an observer of a tuning's steps, and notes how long each took.

    Attributes:
        observer: receives the progress.
        seconds: spent by step.
        took: the same, of each step's last block alone.
    """

    def __init__(self, observer: TuneObserver) -> None:
        """Begin.

        Args:
            observer: receives the progress.
        """
        self.observer = observer
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self.took: dict[str, float] = collections.defaultdict(float)

    @contextmanager
    def step(self, name: str, words: str) -> Iterator[None]:
        """A step.

        Args:
            name: in `seconds`; steps of the same name add up.
            words: for the observer.
        """
        self.observer.step(words)
        with self.spent(name):
            yield

    @contextmanager
    def spent(self, name: str) -> Iterator[None]:
        """Add what a block takes to `seconds`, however it ends; no shift of the wall clock changes it."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.took[name] = time.monotonic() - began
            self.seconds[name] += self.took[name]
