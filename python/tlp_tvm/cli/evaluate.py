"""`tlp-tvm evaluate`: how well models and baselines rank held-out programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tlp_tvm.cli.parts.common import JsonOption, console, print_json, print_table
from tlp_tvm.cli.parts.few_labels import EPOCHS as FEW_SHOT_EPOCHS
from tlp_tvm.cli.parts.few_labels import FewShotOptions, evaluate_few_shot
from tlp_tvm.cli.parts.progress import status

if TYPE_CHECKING:
    from rich.table import Table

    from tlp_tvm.evaluation.corpus import Corpus
    from tlp_tvm.evaluation.rankers import Ranker
    from tlp_tvm.evaluation.side_by_side import RankerComparison

EPOCHS = 50
RECIPES = "local, mtl, blend, finetune, impute"
NAMES = "random, xgboost-sequence, xgboost-features, tenset-mlp, published-tlp, published-mtl-tlp"


def evaluate(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL... DATASET",
            help="Shipped models, checkpoint folders or exported files, then a dataset or record files.",
        ),
    ],
    split: Annotated[
        str | None, typer.Option(help="Split to evaluate on. Default: test if there is one, else all tasks.")
    ] = None,
    platform: Annotated[
        list[str] | None,
        typer.Option(
            help="Evaluate this platform only. Repeatable. For plain record files, the head that scores them."
        ),
    ] = None,
    k: Annotated[
        list[int] | None,
        typer.Option(
            "--k", min=1, help="Values of k in top-k. Default: 1, 5, 10 and 20, or 1 and 5 for one model."
        ),
    ] = None,
    baselines: Annotated[
        str, typer.Option(help=f"Baselines, fitted to the train split; some of {NAMES}.")
    ] = "",
    seeds: Annotated[
        int, typer.Option(min=1, help="Seeds: fits of each baseline and draws of the seen programs.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="First seed; also of random picks and ties.")] = 0,
    seen: Annotated[
        str,
        typer.Option(help="Measured programs of a task that models see before they rank the rest: 0,16,64."),
    ] = "0",
    few_shot: Annotated[
        str | None,
        typer.Option(
            metavar="PLATFORM",
            help="Train on few labels of this platform by --recipes, and evaluate the results.",
        ),
    ] = None,
    labels: Annotated[
        str, typer.Option(help="With --few-shot: numbers or shares of labels: 0,430,7%,all.")
    ] = "0,50,200,1000,5000,all",
    recipes: Annotated[str, typer.Option(help=f"With --few-shot: some of {RECIPES}.")] = RECIPES,
    choose: Annotated[
        str,
        typer.Option(
            help="With --few-shot: how labelled programs are chosen: random, grouped by task, diverse."
        ),
    ] = "random",
    rounds: Annotated[int, typer.Option(min=1, help="Trees of the XGBoost baselines.")] = 300,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs of networks. Default: 50, or our recipe's."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Cache of features and finished trainings. Default: the user's cache folder."),
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Draw the comparison to this file.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Rank the programs of every task; compare the top picks with the best program and a random pick.

    top-k is the share of the best measured speed that the k top picks reach. Several models, baselines, seeds
    or numbers of seen programs are compared on the same programs, with mean and spread over seeds. With
    --few-shot and DATASET alone, recipes train on few labels of one of its platforms.

    Example: tlp-tvm evaluate epyc datasets/epyc --baselines xgboost-sequence --seeds 3 --seen 0,16
    """
    from tlp_tvm.dataset import framework_of_dataset
    from tlp_tvm.dataset.ranking import ranking_rows
    from tlp_tvm.evaluation.corpus import Corpus
    from tlp_tvm.evaluation.rankers import ModelRanker
    from tlp_tvm.evaluation.side_by_side import KS, compare_rankers
    from tlp_tvm.files import user_cache
    from tlp_tvm.layout import FeatureLayout
    from tlp_tvm.model.checkpoint import load_model

    models, dataset = _models_and_dataset(names)
    if few_shot is not None:
        if models or baselines:
            found = ", ".join(models) or f"--baselines {baselines}"
            raise typer.BadParameter(
                f"expected only a dataset, since every model is trained, found {found}",
                param_hint="--few-shot",
            )
        evaluate_few_shot(
            dataset,
            FewShotOptions(
                target=few_shot,
                labels=labels,
                recipes=recipes,
                choose=choose,
                seeds=range(seed, seed + seeds),
                ks=sorted(set(k or (1, 5))),
                epochs=epochs or FEW_SHOT_EPOCHS,
                split=split,
                platforms=platform,
                cache=(cache or user_cache()) / "few-shot",
                png=png,
                device=device,
                as_json=as_json,
            ),
        )
        return
    chosen = [name.strip() for name in baselines.split(",") if name.strip()]
    counts = _counts(seen)
    fitted = _fitted(chosen, rounds, epochs or EPOCHS, cache, device)
    models = list(dict.fromkeys(models))
    loaded = [load_model(model).to(device) for model in models]
    source = dataset[0] if len(dataset) == 1 else dataset
    layout = loaded[0].layout if loaded else FeatureLayout.preset(framework_of_dataset(source))
    corpus = Corpus(source, layout, platforms=platform or None, split=split)
    about = {"dataset_digest": corpus.whole.digest, "split": corpus.split}
    title = f"{', '.join(models) or 'baselines'}: {corpus.split or 'all'} tasks"
    if len(models) == 1 and not chosen and seeds == 1 and counts == [0] and png is None:
        scores = _scores(corpus, ModelRanker(loaded[0]))
        rows = [row.to_dict() for row in ranking_rows(corpus.judged, scores, sorted(set(k or (1, 5))), seed)]
        if as_json:
            print_json({"model": models[0], **about, "rows": rows})
        else:
            print_table(table_of(rows, title))
        return
    rankers: list[Ranker] = [ModelRanker(m, name) for m, name in zip(loaded, models, strict=True)]
    with status("reading the dataset") as tell:
        comparison = compare_rankers(
            corpus,
            rankers + fitted,
            seeds=range(seed, seed + seeds),
            seen=counts,
            ks=sorted(set(k or KS)),
            tell=tell,
        )
    if png is not None:
        from tlp_tvm.evaluation.ranking_plot import draw_rankers

        draw_rankers(comparison.rows, png)
    if as_json:
        seeds_used = list(range(seed, seed + seeds))
        print_json({"models": models, **about, "seeds": seeds_used, **comparison.to_dict()})
        return
    for name in dict.fromkeys(row.platform for row in comparison.rows):
        print_table(compared_table(comparison, name, f"{title}, {name}, {seeds} seeds"))
    _print_notes(comparison)


def _models_and_dataset(names: list[str]) -> tuple[list[str], list[Path]]:
    """Models come first; the last name is always the dataset's."""
    from tlp_tvm.model.checkpoint import CONFIG, shipped_models

    count = min(1, len(names) - 1)
    while count and count < len(names) - 1:
        path = Path(names[count])
        is_model = (path / CONFIG).is_file() or path.suffix == ".pt"
        if not is_model and (path.exists() or names[count] not in shipped_models()):
            break
        count += 1
    return names[:count], [Path(name) for name in names[count:]]


def _counts(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise typer.BadParameter(f"expected numbers such as 0,16,64, found {text}", param_hint="--seen")
    return sorted({int(part) for part in parts})


def _fitted(
    names: Sequence[str], rounds: int, epochs: int | None, cache: Path | None, device: str
) -> list[Ranker]:
    from tlp_tvm.evaluation.baselines import BaselineSettings, make_baselines
    from tlp_tvm.files import user_cache

    return make_baselines(
        names, BaselineSettings(rounds=rounds, epochs=epochs, cache=cache or user_cache(), device=device)
    )


def _scores(corpus: Corpus, ranker: Ranker) -> Any:
    import numpy as np

    ranker.fit(corpus, 0, lambda words: None)
    columns = range(len(corpus.whole.platforms))
    return np.stack([ranker.scores(corpus.judged_programs, column) for column in columns], 1)


def compared_table(comparison: RankerComparison, platform: str, title: str) -> Table:
    """The rows of a platform, and what could not be computed."""
    from rich.table import Table

    rows = [row for row in comparison.rows if row.platform == platform]
    ks = list(rows[0].top)
    table = Table(title=title, caption="mean ± standard deviation over seeds")
    for name in (
        "network",
        "tasks",
        "seen",
        "ranker",
        *(f"top-{k}" for k in ks),
        "Spearman",
        "Kendall",
        "pairs",
    ):
        table.add_column(name, overflow="fold", justify="left" if name in ("network", "ranker") else "right")
    found = {(row.network, row.seen, row.ranker): row for row in rows}
    networks, counts = (dict.fromkeys(getattr(row, name) for row in rows) for name in ("network", "seen"))
    rankers = list(dict.fromkeys([row.ranker for row in comparison.rows] + list(comparison.not_computable)))
    for network in networks:
        for seen in counts:
            for i, ranker in enumerate(rankers):
                row = found.get((network, seen, ranker))
                numbers = [*row.top.values(), row.spearman, row.kendall, row.pairwise_accuracy] if row else []
                cells = [
                    f"{n.mean:.3f} ± {n.deviation:.3f}" if n.deviation > 0 else f"{n.mean:.3f}"
                    for n in numbers
                ] or ["not computable"]
                tasks = str(found[network, seen, rankers[0]].tasks)
                table.add_row(network, tasks, str(seen), ranker, *cells, end_section=i + 1 == len(rankers))
    return table


def _print_notes(comparison: RankerComparison) -> None:
    for name, tasks in comparison.not_computable.items():
        for workload_key, why in tasks.items():
            console.print(
                f"{name}: not computable: {workload_key}: {why}",
                highlight=False,
                soft_wrap=True,
                markup=False,
            )
    for name, notes in comparison.notes.items():
        for note in notes:
            console.print(f"{name}: {note}", highlight=False, soft_wrap=True, markup=False)


def table_of(rows: list[dict[str, Any]], title: str) -> Table:
    """Rows of `ranking_rows` as a table."""
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
