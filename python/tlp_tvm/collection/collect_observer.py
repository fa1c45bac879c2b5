"""Progress of a collection, for the command line or any caller."""

from __future__ import annotations

from collections.abc import Mapping


class CollectObserver:
    """Told how a collection goes; does nothing with it. Methods are called from the collection's thread."""

    def step(self, words: str) -> None:
        """A step begins.

        Args:
            words: e.g. "splitting resnet_18-224 into tasks".
        """

    def planned(self, tasks: int, programs: int, known: int) -> None:
        """The measuring is about to begin.

        Args:
            tasks: of all networks.
            programs: wanted in all.
            known: how many of them the folder already has.
        """

    def waits(self, cores: float) -> None:
        """The measuring waits for other work to end.

        Args:
            cores: that other processes keep busy.
        """

    def measured(self, programs: int, tasks_done: int, failures: Mapping[str, int]) -> None:
        """A program was measured and written.

        Args:
            programs: that the folder holds by now.
            tasks_done: tasks that have all that is wanted of them.
            failures: why programs failed, in words, and how many.
        """
