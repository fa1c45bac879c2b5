"""`tlp-tvm evaluate --few-shot`: recipes for few labels of a platform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from tlp_tvm.cli.parts.common import console, print_json, print_table, progress_console
from tlp_tvm.cli.parts.progress import text_column
from tlp_tvm.cli.parts.ranking_tables import spread_cells
from tlp_tvm.cli.parts.rankings import Rankings

if TYPE_CHECKING:
    from rich.table import Table

    from tlp_tvm.evaluation.corpus import Corpus
    from tlp_tvm.evaluation.few_shot.few_shot_run import FewShot
    from tlp_tvm.evaluation.few_shot.few_shot_settings import FewShotSettings
    from tlp_tvm.evaluation.labelling import Choose

EPOCHS = 40


@dataclass(frozen=True)
class FewLabels:
    """Options of the command line."""

    rankings: Rankings
    """Those that `evaluate` has anyway; no models and no baselines."""
    target: str
    labels: str
    recipes: str
    choose: str

    @property
    def epochs(self) -> int:
        """Of each training."""
        return self.rankings.epochs or EPOCHS

    @property
    def settings(self) -> FewShotSettings:
        """What to find out.

        Raises:
            BadParameter: there is no such choice of programs.
            DatasetError: there is no such recipe, or a number of labels is none.
        """
        from tlp_tvm.evaluation.few_shot.few_shot_settings import FewShotSettings
        from tlp_tvm.evaluation.few_shot.recipes import recipes_named
        from tlp_tvm.evaluation.labelling import label_counts
        from tlp_tvm.training.train_settings import TrainSettings

        return FewShotSettings(
            target=self.target,
            cache=self.rankings.cache / "few-shot",
            chooses=_chosen(self.choose),
            recipes=list(recipes_named(_parts(self.recipes))),
            counts=label_counts(self.labels),
            seeds=self.rankings.seeds,
            ks=self.rankings.ks or (1, 5),
            training=TrainSettings(epochs=self.epochs),
            device=self.rankings.device,
        )


def evaluate_few_labels(options: FewLabels) -> None:
    """Train, evaluate and print; cached trainings are reused."""
    settings, seeds = options.settings, options.rankings.seeds
    corpus = options.rankings.corpus()
    found = _run(corpus, settings)
    if options.rankings.png is not None:
        from tlp_tvm.evaluation.few_shot.few_shot_plot import draw_few_shot

        draw_few_shot(found, options.rankings.png)
    if options.rankings.as_json:
        about = {"dataset_digest": corpus.whole.digest, "split": corpus.split, "seeds": list(seeds)}
        print_json({**about, "epochs": options.epochs, **found.to_dict()})
        return
    print_table(_table_of(found, f"{options.target}: {corpus.split} tasks, {len(seeds)} seeds"))
    for words in found.left_out:
        console.print(words)


def _run(corpus: Corpus, settings: FewShotSettings) -> FewShot:
    """With a progress bar."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from tlp_tvm.evaluation.few_shot.few_shot_run import few_shot

    columns = (TextColumn("few labels"), BarColumn(bar_width=20), MofNCompleteColumn())
    with Progress(*columns, text_column("{task.description}"), console=progress_console) as progress:
        bar = progress.add_task("", total=None)

        def tell(done: int, total: int, words: str) -> None:
            progress.update(bar, completed=done, total=total, description=words)

        return few_shot(corpus, settings, tell)


def _chosen(text: str) -> list[Choose]:
    from tlp_tvm.evaluation.labelling import Choose

    known = [choose.value for choose in Choose]
    names = _parts(text)
    if wrong := [name for name in names if name not in known]:
        raise typer.BadParameter(
            f"expected some of {', '.join(known)}, found {wrong[0]}", param_hint="--choose"
        )
    return [Choose(name) for name in names]


def _parts(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _table_of(found: FewShot, title: str) -> Table:
    """The rows, by network, number of labels and recipe."""
    from rich.table import Table

    table = Table(title=title, caption="mean ± standard deviation over seeds")
    for name in ("network", "tasks", "labels", "recipe", "chosen", *(f"top-{k}" for k in found.rows[0].top)):
        table.add_column(name, justify="left" if name in ("network", "recipe", "chosen") else "right")
    for name in ("Spearman", "Kendall", "pairs"):
        table.add_column(name, justify="right")
    for i, row in enumerate(found.rows):
        after = found.rows[i + 1] if i + 1 < len(found.rows) else None
        table.add_row(
            row.network,
            str(row.tasks),
            f"{row.labels} ({row.share:.1%})",
            row.recipe,
            row.choose,
            *spread_cells(row),
            end_section=after is None or (after.network, after.labels) != (row.network, row.labels),
        )
    return table
