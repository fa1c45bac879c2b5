"""`tlp-tvm train --add-to`: a head for a new platform."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tlp_tvm.cli.parts.common import print_json, progress_console
from tlp_tvm.cli.parts.progress import text_column
from tlp_tvm.cli.parts.ranking_tables import print_card

if TYPE_CHECKING:
    from tlp_tvm.dataset.reading.measured import MeasuredDataset
    from tlp_tvm.training.runs.add_platform import Addition
    from tlp_tvm.training.train_settings import TrainSettings


def addition_of(
    model: str,
    platforms: Sequence[str] | None,
    training: TrainSettings,
    hold_out: int | None,
    unused: Sequence[str],
) -> Addition:
    """What the options say of a new head.

    Args:
        model: what it is added to.
        platforms: of --platform.
        training: how to train.
        hold_out: of --hold-out.
        unused: names of given options that go with whole models only.

    Raises:
        BadParameter: there is such an option, or not one platform.
    """
    from tlp_tvm.training.runs.add_platform import Addition
    from tlp_tvm.training.runs.splits import HOLD_OUT

    if unused:
        sentence = f"expected the shape and layout of {model}, found --{unused[0]}; leave it out"
        raise typer.BadParameter(sentence, param_hint="--add-to")
    if platforms is None or len(platforms) != 1:
        sentence = f"expected one new --platform, found {', '.join(platforms or ()) or 'none'}"
        raise typer.BadParameter(sentence, param_hint="--add-to")
    return Addition(platforms[0], training, HOLD_OUT if hold_out is None else hold_out)


def train_addition(
    model: str,
    source: Path | Sequence[Path],
    out: Path,
    addition: Addition,
    *,
    device: str,
    as_json: bool,
) -> None:
    """Train the head, then print its metrics as tables or JSON."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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

    try:
        config = add_platform(
            load_model(model), source, out, addition, device=device, on_data=announce, on_epoch=advance
        )
    finally:
        progress.stop()
    metrics = config.card["metrics"]
    if as_json:
        print_json({"model": str(out), "added": {"platform": addition.platform}, "metrics": metrics})
    else:
        print_card(metrics, out)
