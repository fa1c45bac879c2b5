"""Progress of commands: a spinner or bar in a terminal, otherwise a line per step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
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


class MeasuringProgress(Progress):
    """A line that counts measured programs, with a field `note` for the rest.

    Without a terminal, it prints a line whenever the description changes, and those of `line`.
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
        self._described = ""

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """As rich's; see the class for what is printed."""
        super().update(task_id, **changes)
        self._print_step(task_id)

    def reset(self, task_id: TaskID, **changes: Any) -> None:
        """As rich's; see the class for what is printed."""
        super().reset(task_id, **changes)
        self._print_step(task_id)

    def line(self, words: str) -> None:
        """Print a line where there is no terminal, which shows the same as it goes."""
        if not self.console.is_terminal:
            self.console.print(words, soft_wrap=True)

    def _print_step(self, task_id: TaskID) -> None:
        task = next(task for task in self.tasks if task.id == task_id)
        if task.description != self._described:
            self._described = task.description
            note = str(task.fields.get("note", ""))
            counted = f" {task.completed:.0f}/{task.total:.0f}" if task.total and task.completed else ""
            told = f", {note}" if note else ""
            self.line(f"{task.description}{counted}{told}")
