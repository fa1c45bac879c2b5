"""What `tlp-tvm train` shows while it works: programs done, how many a second, the time left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from tlp_tvm.cli.parts.common import progress_console
from tlp_tvm.cli.parts.progress import text_column

if TYPE_CHECKING:
    from tlp_tvm.dataset.reading.measured import MeasuredDataset


class SpeedColumn(ProgressColumn):
    """Programs a second, once there is something to divide."""

    def render(self, task: Task) -> Text:
        """The rate of the last seconds, or of all that was done."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} programs/s")


class TrainingProgress:
    """The callbacks of `train_model`; a process that does not write is silent."""

    def __init__(self, *, silent: bool = False) -> None:
        columns = (
            text_column("{task.fields[what]}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
        )
        more = (SpeedColumn(), TimeRemainingColumn(), text_column("{task.description}"))
        self._progress = Progress(*columns, *more, console=progress_console, disable=silent)
        self._silent = silent
        self._training: TaskID | None = None
        self._judging: TaskID | None = None
        self._text = ""

    def data(self, data: MeasuredDataset, validation: MeasuredDataset | None) -> None:
        """Say what there is, and begin."""
        held_out = f", {len(validation.tasks)} held out" if validation else ""
        names = ", ".join(p.name for p in data.platforms)
        streamed = ", streamed" if data.is_streamed else ""
        if not self._silent:
            text = f"{len(data):,} programs of {len(data.tasks):,} tasks{held_out} on {names}{streamed}"
            progress_console.print(text)
        self._progress.start()

    def epoch(self, entry: dict[str, Any]) -> None:
        """An epoch is done."""
        self._text = f"epoch {entry['epoch']}, loss {entry['loss']:.3f}"
        if "validation" in entry:
            found = entry["validation"]
            self._text += f", top-1 {found['top1']:.3f}, top-5 {found['top5']:.3f}"
        if self._training is not None:
            self._progress.update(self._training, description=self._text)

    def batch(self, done: int, total: int) -> None:
        """Some programs are done; what an earlier run did is no part of the rate."""
        if self._training is None:
            self._training = self._progress.add_task(self._text, total=total, completed=done, what="training")
        self._progress.update(self._training, completed=done)

    def fold(self, done: int, total: int) -> None:
        """A training of the cross-validation is done."""
        if self._judging is None:
            self._judging = self._progress.add_task("", total=total, what="cross-validation")
        self._progress.update(self._judging, completed=done, description=f"{done} of {total} trainings")

    def stop(self) -> None:
        """Leave the last state on the screen."""
        self._progress.stop()
