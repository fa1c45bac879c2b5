"""Progress of commands: a spinner or bar in a terminal, otherwise a line per step."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tlp_tvm.cli.parts.common import progress_console


def text_column(template: str) -> TextColumn:
    """A column whose fields are plain text, brackets included."""
    return TextColumn(template, markup=False)


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Show the current step.

    Args:
        text: the first step.

    Yields:
        A function that takes the next step.
    """

    def tell(step: str) -> None:
        if progress_console.is_terminal:
            spinner.update(Text(step))
        else:
            progress_console.print(step, soft_wrap=True)

    with progress_console.status(Text(text)) as spinner:
        yield tell


LINE_EVERY_S = 30.0
"""Seconds after which a step that goes on says again how far it is, where there is no terminal."""


class MeasuringProgress(Progress):
    """One line: the step, how many programs are measured, and a note.

    Without a terminal, it prints a line whenever the step changes, one in `LINE_EVERY_S` while it goes on,
    and those of `line`.
    """

    def __init__(self, stream: TextIO) -> None:
        """Show nothing yet.

        Args:
            stream: where to draw; TVM uses standard error while programs are measured.
        """
        super().__init__(
            SpinnerColumn(),
            text_column("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            text_column("{task.fields[note]}"),
            console=Console(file=stream, markup=False, highlight=False, emoji=False),
            redirect_stderr=False,
            transient=True,
            speed_estimate_period=120,
        )
        self._only = self.add_task("starting", total=None, note="")
        self._said = self.get_time()

    def step(self, words: str, total: int | None = None, completed: int = 0) -> None:
        """Begin a step.

        Args:
            words: what it is.
            total: programs to measure; None for a step that measures none, or as many as there is time for.
            completed: how many of them are measured already.
        """
        self.reset(self._only, total=total, completed=completed, description=words, note="")
        self._say_how_far()

    def measured(self, completed: int, note: str) -> None:
        """Show how many programs of the step are measured."""
        self.update(self._only, completed=completed, note=note)
        if self.get_time() - self._said >= LINE_EVERY_S:
            self._say_how_far()

    def part(self, words: str) -> None:
        """Begin a part of the step; the count and the note stay."""
        shown = self.tasks[0]
        if words != shown.description:
            self.update(self._only, description=words)
            self._say_how_far()

    def _say_how_far(self) -> None:
        shown = self.tasks[0]
        unit = f"/{shown.total:.0f}" if shown.total else " programs"
        counted = f" {shown.completed:.0f}{unit}" if shown.completed else ""
        note = f", {shown.fields['note']}" if shown.fields["note"] else ""
        self.line(f"{shown.description}{counted}{note}")

    def line(self, words: str) -> None:
        """Print a line where there is no terminal, which shows the same as it goes."""
        self._said = self.get_time()
        if not self.console.is_terminal:
            self.console.print(words, soft_wrap=True)


@contextmanager
def measuring_progress() -> Iterator[MeasuringProgress]:
    """Progress on a descriptor of its own: standard error itself is TVM's while programs are measured."""
    from tlp_tvm.measuring.native_messages import STANDARD_ERROR

    with os.fdopen(os.dup(STANDARD_ERROR), "w") as stream, MeasuringProgress(stream) as shown:
        yield shown
