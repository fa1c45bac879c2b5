"""`tlp-tvm train --add-to`: a head for a new platform."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlp_tvm.cli.parts.common import console, print_json, print_table, progress_console
from tlp_tvm.cli.parts.progress import text_column

if TYPE_CHECKING:
    from tlp_tvm.dataset.reading.measured import MeasuredDataset
    from tlp_tvm.training.runs.add_platform import Addition
    from tlp_tvm.training.train_settings import TrainSettings


def train_addition(
    model: str, dataset: Sequence[Path], out: Path, addition: Addition, *, device: str, as_json: bool
) -> None:
    """Train the head, then print its metrics as tables or JSON."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from tlp_tvm.cli.evaluate import table_of
    from tlp_tvm.model.checkpoint import load_model
    from tlp_tvm.training.runs.add_platform import add_platform

    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, text_column("{task.description}"), console=progress_console)
    bar = progress.add_task("", total=None)

    def announce(data: MeasuredDataset, validation: MeasuredDataset | None, training: TrainSettings) -> None:
        held_out = f", {len(validation.tasks)} held out" if validation else ""
        progress_console.print(f"{len(data)} programs of {len(data.tasks)} tasks{held_out}")
        progress.update(bar, total=training.epochs)
        progress.start()

    def advance(entry: dict[str, Any]) -> None:
        progress.update(bar, completed=entry["epoch"], description=f"loss {entry['loss']:.3f}")

    source = dataset[0] if len(dataset) == 1 else list(dataset)
    try:
        config = add_platform(
            load_model(model), source, out, addition, device=device, on_data=announce, on_epoch=advance
        )
    finally:
        progress.stop()
    if as_json:
        added = {"platform": addition.platform, "replay": addition.replay}
        print_json({"model": str(out), "added": added, "metrics": config.card["metrics"]})
        return
    for split in ("validation", "test"):
        if rows := config.card["metrics"].get(split):
            print_table(table_of(rows, f"{split} tasks"))
    console.print(f"model and card: {out}")
