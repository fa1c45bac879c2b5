"""`tlp-tvm evaluate --few-shot`: recipes for few labels of a platform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tlp_tvm.cli.parts.common import console, print_json, progress_console
from tlp_tvm.cli.parts.progress import text_column

if TYPE_CHECKING:
    from rich.table import Table

    from tlp_tvm.evaluation.few_shot.few_shot_run import FewShot

EPOCHS = 40


@dataclass(frozen=True)
class FewShotOptions:
    """Options of the command line."""

    target: str
    labels: str
    recipes: str
    choose: str
    seeds: Sequence[int]
    ks: Sequence[int]
    epochs: int
    split: str | None
    platforms: Sequence[str] | None
    cache: Path
    png: Path | None
    device: str
    as_json: bool


def evaluate_few_shot(dataset: Sequence[Path], options: FewShotOptions) -> None:
    """Train, evaluate and print; cached trainings are reused."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from tlp_tvm.dataset import framework_of_dataset
    from tlp_tvm.evaluation.corpus import Corpus
    from tlp_tvm.evaluation.few_shot.few_shot_run import few_shot
    from tlp_tvm.evaluation.few_shot.few_shot_settings import FewShotSettings
    from tlp_tvm.evaluation.few_shot.recipes import recipes_named
    from tlp_tvm.evaluation.labelling import Choose, label_counts
    from tlp_tvm.layout import FeatureLayout
    from tlp_tvm.training.train_settings import TrainSettings

    known = [choose.value for choose in Choose]
    chooses = _parts(options.choose)
    if wrong := [name for name in chooses if name not in known]:
        raise typer.BadParameter(
            f"expected some of {', '.join(known)}, found {wrong[0]}", param_hint="--choose"
        )
    settings = FewShotSettings(
        target=options.target,
        cache=options.cache,
        recipes=list(recipes_named(_parts(options.recipes))),
        counts=label_counts(options.labels),
        seeds=options.seeds,
        chooses=[Choose(name) for name in chooses],
        ks=options.ks,
        training=TrainSettings(epochs=options.epochs),
        device=options.device,
    )
    source = dataset[0] if len(dataset) == 1 else list(dataset)
    layout = FeatureLayout.preset(framework_of_dataset(source))
    corpus = Corpus(source, layout, platforms=options.platforms or None, split=options.split)
    columns = (TextColumn("few labels"), BarColumn(bar_width=20), MofNCompleteColumn())
    with Progress(*columns, text_column("{task.description}"), console=progress_console) as progress:
        bar = progress.add_task("", total=None)
        found = few_shot(
            corpus,
            settings,
            lambda done, total, words: progress.update(bar, completed=done, total=total, description=words),
        )
    if options.png is not None:
        from tlp_tvm.evaluation.few_shot.few_shot_plot import draw_few_shot

        draw_few_shot(found, options.png)
    if options.as_json:
        about = {"dataset_digest": corpus.whole.digest, "split": corpus.split, "seeds": list(options.seeds)}
        print_json({**about, "epochs": options.epochs, **found.to_dict()})
        return
    console.print(
        few_shot_table(found, f"{options.target}: {corpus.split} tasks, {len(options.seeds)} seeds")
    )
    for words in found.left_out:
        console.print(words, highlight=False)


def _parts(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def few_shot_table(found: FewShot, title: str) -> Table:
    """The rows as a table, by network, number of labels and recipe."""
    from rich.table import Table

    table = Table(title=title, caption="mean ± standard deviation over seeds")
    for name in ("network", "tasks", "labels", "recipe", "chosen", *(f"top-{k}" for k in found.rows[0].top)):
        table.add_column(name, justify="left" if name in ("network", "recipe", "chosen") else "right")
    for name in ("Spearman", "Kendall", "pairs"):
        table.add_column(name, justify="right")
    for i, row in enumerate(found.rows):
        numbers = [*row.top.values(), row.spearman, row.kendall, row.pairwise_accuracy]
        after = found.rows[i + 1] if i + 1 < len(found.rows) else None
        table.add_row(
            row.network,
            str(row.tasks),
            f"{row.labels} ({row.share:.1%})",
            row.recipe,
            row.choose,
            *(f"{n.mean:.3f} ± {n.deviation:.3f}" if n.deviation > 0 else f"{n.mean:.3f}" for n in numbers),
            end_section=after is None or (after.network, after.labels) != (row.network, row.labels),
        )
    return table
