"""`tlp-tvm evaluate --choice`: what models choose when nobody measures for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tlp_tvm.cli.parts.common import console, print_json, print_table
from tlp_tvm.cli.parts.progress import MeasuringProgress, measuring_progress

if TYPE_CHECKING:
    from tlp_tvm.evaluation.choice.model_choices import Choices


def evaluate_choices(
    models: Sequence[str],
    dataset: Sequence[Path],
    networks: str,
    out: Path | None,
    *,
    target: str,
    tasks: int,
    seed: int,
    as_json: bool,
) -> None:
    """Breed, choose, time and print.

    Raises:
        BadParameter: there is no model, or no folder for the run.
    """
    if out is None:
        raise typer.BadParameter("expected --out, a folder to resume from, found none", param_hint="--choice")
    if not models:
        raise typer.BadParameter("expected MODEL... and then DATASET, found one name", param_hint="--choice")
    from tlp_tvm.evaluation.choice import model_choices
    from tlp_tvm.evaluation.choice.choice_settings import ChoiceSettings
    from tlp_tvm.model.checkpoint import load_model

    settings = ChoiceSettings(
        models=tuple(models),
        networks=tuple(part.strip() for part in networks.split(",") if part.strip()),
        known=tuple(dataset),
        out=out,
        target=target,
        tasks=tasks,
        seed=seed,
        framework=load_model(models[0]).layout.framework,
    )
    with measuring_progress() as progress:
        found = model_choices.choose(settings, _observer(progress))
    if as_json:
        print_json({**found.content, "regrets": [row.to_dict() for row in found.regrets()]})
    else:
        _print(found, out)


def _observer(progress: MeasuringProgress) -> Any:
    from tlp_tvm.evaluation.choice.choice_settings import ChoiceObserver

    class Shown(ChoiceObserver):
        """One line: tasks done, and how the last one went; or else a line a task."""

        def __init__(self) -> None:
            self.tasks = 0

        def step(self, words: str) -> None:
            progress.step(words)

        def planned(self, tasks: int, done: int) -> None:
            self.tasks = tasks
            progress.step("choosing", tasks, done)

        def chose(self, done: int, desc: str, words: str) -> None:
            progress.measured(done, words)
            progress.line(f"{done}/{self.tasks} {desc.removeprefix('vm_mod_fused_')[:40]}: {words}")

    return Shown()


def _print(found: Choices, out: Path) -> None:
    from rich.table import Table

    rows, content = found.regrets(), found.content
    table = Table(
        title=f"latency of each model's first choices / best known, {content['target']}",
        title_justify="left",
        caption="in brackets: 95% bootstrap interval over tasks; network: of their sum, by occurrence",
    )
    table.add_column("model")
    for name in ("first", "tasks", "geometric mean", "network", "worst task"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.model,
            str(row.k),
            str(row.tasks),
            f"{row.mean:.3f} ({row.interval.low:.2f}-{row.interval.high:.2f})",
            f"{row.network:.3f}",
            f"{row.worst:.2f}",
            end_section=row.k == rows[-1].k,
        )
    print_table(table)
    minutes = content["seconds"] / 60
    console.print(
        f"{minutes:.1f} minutes, splitting left out; results: {out}", highlight=False, soft_wrap=True
    )
