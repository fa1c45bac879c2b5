"""`tlp-tvm evaluate`: how well a model ranks programs that it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tlp_tvm.cli.common import JsonOption, console, print_json

if TYPE_CHECKING:
    from rich.table import Table


def evaluate(
    model: Annotated[str, typer.Argument(help="A shipped model, a checkpoint folder or an exported file.")],
    dataset: Annotated[list[Path], typer.Argument(help="A dataset folder, or record files.")],
    split: Annotated[
        str | None, typer.Option(help="Which tasks; the test split where there is one, or else all.")
    ] = None,
    platform: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this platform; repeat for more. Names the head that scores plain record files."
        ),
    ] = None,
    k: Annotated[list[int] | None, typer.Option("--k", min=1, help="First choices that count.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random picks and of ties.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Rank the programs of every task; compare the first choices with the best and with a random pick.

    top-k is 1 where the k first choices hold the fastest program of every task.

    Example: tlp-tvm evaluate epyc datasets/epyc
    """
    from tlp_tvm.dataset.records import load_measured
    from tlp_tvm.evaluation.report import evaluate as evaluate_scores
    from tlp_tvm.model.checkpoint import load_model

    loaded = load_model(model).to(device)
    source = dataset[0] if len(dataset) == 1 else dataset
    measured = load_measured(source, loaded.layout, platforms=platform or None)
    if split is None and "test" in measured.splits:
        split = "test"
    chosen = measured.of_split(split) if split is not None else measured
    columns = [
        loaded.column(p.name if p.name in loaded.platforms or platform else loaded.platform_of(p.target))
        for p in chosen.platforms
    ]
    scores = loaded.score_all(chosen.features())[:, columns]
    rows = [row.to_dict() for row in evaluate_scores(chosen, scores, sorted(set(k or (1, 5))), seed)]
    if as_json:
        print_json({"model": model, "dataset_digest": measured.digest, "split": split, "rows": rows})
    else:
        console.print(table_of(rows, f"{model}: {split or 'all'} tasks"))


def table_of(rows: list[dict[str, Any]], title: str) -> Table:
    """Rows of `tlp_tvm.evaluation.report` as a table."""
    from rich.table import Table

    table = Table(title=title, caption="random: the mean of random picks (nine of ten of them between)")
    ks = list(rows[0]["top"]) if rows else []
    for name in ("platform", "network"):
        table.add_column(name, overflow="fold")
    for name in ("tasks", *(f"top-{k}" for k in ks), *(f"random top-{k}" for k in ks), "Spearman"):
        table.add_column(name, justify="right")
    for i, row in enumerate(rows):
        chance = [row["random"][k] for k in ks]
        table.add_row(
            row["platform"],
            row["network"],
            str(row["tasks"]),
            *(f"{row['top'][k]:.3f}" for k in ks),
            *(f"{c['mean']:.3f} ({c['low']:.2f}-{c['high']:.2f})" for c in chance),
            f"{row['spearman']:.3f}",
            end_section=i + 1 == len(rows) or rows[i + 1]["platform"] != row["platform"],
        )
    return table
