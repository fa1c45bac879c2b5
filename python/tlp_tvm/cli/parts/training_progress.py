"""Progress of `tlp-tvm train`: programs done, their rate, the time left; in a file, a line an epoch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from tlp_tvm.cli.parts.common import progress_console
from tlp_tvm.cli.parts.progress import LINE_EVERY_S, text_column

if TYPE_CHECKING:
    from tlp_tvm.dataset.reading.measured import MeasuredDataset


class SpeedColumn(ProgressColumn):
    """Programs per second, once there is a rate."""

    def render(self, task: Task) -> Text:
        """The recent rate, or the mean rate at the end."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} programs/s")


class TrainingProgress:
    """Callbacks of `train_model`; a process that does not write is silent.

    Without a terminal it prints a line after each epoch and each training of the cross-validation, and one in
    `LINE_EVERY_S` in an epoch that takes longer.
    """

    def __init__(self, *, silent: bool = False) -> None:
        columns = (
            text_column("{task.fields[what]}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
        )
        more = (SpeedColumn(), TimeRemainingColumn(), text_column("{task.description}"))
        self._progress = Progress(*columns, *more, console=progress_console, disable=silent)
        self._silent, self._said = silent, time.monotonic()
        self._training: TaskID | None = None
        self._judging: TaskID | None = None
        self._text = ""

    def data(self, data: MeasuredDataset, validation: MeasuredDataset | None) -> None:
        """Print the size of the data, and start."""
        held_out = f", {len(validation.tasks)} held out" if validation else ""
        names = ", ".join(p.name for p in data.platforms)
        streamed = ", streamed" if data.is_streamed else ""
        if not self._silent:
            text = f"{len(data):,} programs of {len(data.tasks):,} tasks{held_out} on {names}{streamed}"
            progress_console.print(text, soft_wrap=True)
        self._progress.start()

    def epoch(self, entry: dict[str, Any]) -> None:
        """After an epoch."""
        self._text = f"epoch {entry['epoch']}, loss {entry['loss']:.3f}"
        if "validation" in entry:
            found = entry["validation"]
            self._text += f", top-1 {found['top1']:.3f}, top-5 {found['top5']:.3f}"
        self._line(self._text)
        if self._training is not None:
            self._progress.update(self._training, description=self._text)

    def batch(self, done: int, total: int) -> None:
        """After a batch; programs of an earlier run do not count into the rate."""
        if self._training is None:
            self._training = self._progress.add_task(self._text, total=total, completed=done, what="training")
        self._progress.update(self._training, completed=done)
        if time.monotonic() - self._said >= LINE_EVERY_S:
            self._line(f"training {done / total:.0%}")

    def fold(self, done: int, total: int) -> None:
        """After a training of the cross-validation."""
        if self._judging is None:
            self._judging = self._progress.add_task("", total=total, what="cross-validation")
        self._progress.update(self._judging, completed=done, description=f"{done} of {total} trainings")
        self._line(f"cross-validation: {done} of {total} trainings")

    def stop(self) -> None:
        """Leave the last state on the screen."""
        self._progress.stop()

    def _line(self, words: str) -> None:
        if not (self._silent or progress_console.is_terminal):
            self._said = time.monotonic()
            progress_console.print(words, soft_wrap=True)
