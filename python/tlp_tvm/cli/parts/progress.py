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

    Without a terminal, it prints a line whenever the step, task or model changes.
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
        self._turn: tuple[str, str] | None = None

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """As rich's; see the class for what is printed."""
        super().update(task_id, **changes)
        self._print_turn(task_id)

    def reset(self, task_id: TaskID, **changes: Any) -> None:
        """As rich's; see the class for what is printed."""
        super().reset(task_id, **changes)
        self._print_turn(task_id)

    def _print_turn(self, task_id: TaskID) -> None:
        if self.console.is_terminal:
            return
        task = next(task for task in self.tasks if task.id == task_id)
        note = str(task.fields.get("note", ""))
        turn = task.description, note.split(":", maxsplit=1)[0] if ":" in note else ""
        if turn != self._turn:
            self._turn = turn
            counted = f" {task.completed:.0f}/{task.total:.0f}" if task.total and task.completed else ""
            told = f", {note}" if note else ""
            self.console.print(f"{task.description}{counted}{told}", soft_wrap=True)
