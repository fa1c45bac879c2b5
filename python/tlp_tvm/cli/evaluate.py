"""`tlp-tvm evaluate`: how well models and baselines rank held-out programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tlp_tvm.cli.parts.choices import evaluate_choices
from tlp_tvm.cli.parts.common import JsonOption
from tlp_tvm.cli.parts.few_labels import FewLabels, evaluate_few_labels
from tlp_tvm.cli.parts.rankings import Rankings, evaluate_rankings, models_and_dataset

BASELINES = (
    "random, xgboost-sequence, xgboost-features, xgboost-tvm, xgboost-tenset, tenset-mlp, tlp, mtl-tlp, "
    "tlp-one, mtl-tlp-one, published-tlp, published-mtl-tlp"
)
RECIPES = "local, mtl, blend, finetune, impute"

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL... DATASET",
        help="Shipped models, checkpoint folders or exported files, then a dataset or record files.",
    ),
]
Split = Annotated[
    str | None, typer.Option(help="Split to evaluate on. Default: test if there is one, else all tasks.")
]
Platforms = Annotated[
    list[str] | None,
    typer.Option(
        help="Evaluate this platform only. Repeatable. For plain record files, the head that scores them."
    ),
]
Ks = Annotated[
    list[int] | None,
    typer.Option(
        "--k", min=1, help="Values of k in top-k. Default: 1, 5, 10 and 20, or 1 and 5 for one model."
    ),
]
Baselines = Annotated[str, typer.Option(help=f"Baselines, fitted to the train split; some of {BASELINES}.")]
Seeds = Annotated[
    int, typer.Option(min=1, help="Seeds: fits of each baseline and draws of the seen programs.")
]
FirstSeed = Annotated[int, typer.Option(min=0, help="First seed; also of random picks and ties.")]
Seen = Annotated[
    str, typer.Option(help="Measured programs of a task that models see before they rank the rest: 0,16,64.")
]
FewShot = Annotated[
    str | None,
    typer.Option(
        metavar="PLATFORM",
        help="Train on few labels of this platform by --recipes, and evaluate the results.",
    ),
]
Labels = Annotated[str, typer.Option(help="With --few-shot: numbers or shares of labels: 0,430,7%,all.")]
Recipes = Annotated[str, typer.Option(help=f"With --few-shot: some of {RECIPES}.")]
Choices = Annotated[
    str,
    typer.Option(help="With --few-shot: how labelled programs are chosen: random, grouped by task, diverse."),
]
Choice = Annotated[
    str,
    typer.Option(
        metavar="NET,...",
        help="Let each model breed and choose programs of these networks' tasks, and time its choices beside "
        "the best of DATASET.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="Folder of a --choice; an existing one is resumed.")]
Tasks = Annotated[
    int, typer.Option(min=0, help="With --choice: tasks per network, the heaviest first; 0 for all.")
]
Target = Annotated[
    str,
    typer.Option(
        help="With --choice: TVM target that programs are chosen and timed for. Default: this machine's CPU."
    ),
]
Epochs = Annotated[int | None, typer.Option(min=1, help="Epochs of networks. Default: 50, or our recipe's.")]
Cache = Annotated[
    Path | None,
    typer.Option(help="Cache of features and finished trainings. Default: the user's cache folder."),
]
Networks = Annotated[
    list[Path] | None,
    typer.Option(
        exists=True,
        file_okay=False,
        help="Folder of the files of networks that are not built in, for baselines on per-store features; "
        "models that have trees are ranked with them too. Repeatable.",
    ),
]
Picture = Annotated[Path | None, typer.Option(help="Draw the comparison to this file.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


def evaluate(
    names: Names,
    split: Split = None,
    platform: Platforms = None,
    k: Ks = None,
    baselines: Baselines = "",
    seeds: Seeds = 1,
    seed: FirstSeed = 0,
    seen: Seen = "0",
    few_shot: FewShot = None,
    labels: Labels = "0,50,200,1000,5000,all",
    recipes: Recipes = RECIPES,
    choose: Choices = "random",
    choice: Choice = "",
    out: Out = None,
    tasks: Tasks = 0,
    target: Target = "",
    epochs: Epochs = None,
    cache: Cache = None,
    networks: Networks = None,
    png: Picture = None,
    device: Device = "auto",
    as_json: JsonOption = False,
) -> None:
    """Rank the programs of every task; compare the top picks with the best program and a random pick.

    top-k is the share of the best measured speed that the k top picks reach. Several models, baselines, seeds
    or numbers of seen programs are compared on the same programs, with mean and spread over seeds. With
    --few-shot and DATASET alone, recipes train on few labels of one of its platforms. With --choice, models
    are judged by what they would choose themselves, out of 10,000 programs bred without measuring.

    Example: tlp-tvm evaluate epyc datasets/epyc --baselines xgboost-sequence --seeds 3 --seen 0,16
    """
    from tlp_tvm.files import user_cache

    models, dataset = models_and_dataset(names)
    if choice:
        evaluate_choices(models, dataset, choice, out, target=target, tasks=tasks, seed=seed, as_json=as_json)
        return
    rankings = Rankings(
        models=models,
        dataset=dataset,
        split=split,
        platforms=platform or None,
        ks=sorted(set(k or ())),
        baselines=baselines,
        seeds=range(seed, seed + seeds),
        seen=seen,
        epochs=epochs,
        cache=cache or user_cache(),
        networks=networks or (),
        png=png,
        device=device,
        as_json=as_json,
    )
    if few_shot is None:
        evaluate_rankings(rankings)
        return
    if models or baselines:
        found = ", ".join(models) or f"--baselines {baselines}"
        sentence = f"expected only a dataset, since every model is trained, found {found}"
        raise typer.BadParameter(sentence, param_hint="--few-shot")
    evaluate_few_labels(FewLabels(rankings, few_shot, labels, recipes, choose))
