"""`tlp-tvm train`: a TLP, or an MTL-TLP where several platforms measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tlp_tvm.cli.add_platform import train_addition
from tlp_tvm.cli.common import JsonOption, console, print_json, progress_console

if TYPE_CHECKING:
    from tlp_tvm.training.run import Recipe

LOSSES = "mse, lambdarank or pairwise"
BACKBONES = "self-attention, transformer or lstm"


def train(
    dataset: Annotated[list[Path], typer.Argument(help="A dataset folder, or record files.")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    layout: Annotated[
        str, typer.Option(help="ansor, paper-cpu, paper-gpu, or a layout's JSON file.")
    ] = "ansor",
    platform: Annotated[
        list[str] | None, typer.Option(help="Only this platform; repeat for more. All without it.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the programs.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="Of the weights, the order and the tasks held out.")] = 0,
    loss: Annotated[str, typer.Option(help=LOSSES)] = "pairwise",
    backbone: Annotated[str, typer.Option(help=BACKBONES)] = "self-attention",
    hidden: Annotated[
        int | None,
        typer.Option(min=8, help="Width of the network, a multiple of 8; the recipe's without it."),
    ] = None,
    members: Annotated[
        int | None, typer.Option(min=1, help="Networks whose scores are averaged; 2, or 1 if faithful.")
    ] = None,
    layers: Annotated[int, typer.Option(min=1, help="Layers of the backbone.")] = 1,
    dropout: Annotated[
        float | None,
        typer.Option(min=0.0, max=0.9, help="Share of activations dropped; 0.1, or 0 if faithful."),
    ] = None,
    faithful: Annotated[
        bool, typer.Option("--faithful", help="The published network, its weaknesses included.")
    ] = False,
    add_to: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Add a head for --platform to this model; the other heads score as before, bit for bit.",
        ),
    ] = None,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="With --add-to: train all heads together; the dataset must have all."),
    ] = False,
    hold_out: Annotated[
        int,
        typer.Option(min=0, help="Hold out one task in so many to choose the epoch by; 0 holds out none."),
    ] = 5,
    cross_validate: Annotated[
        int, typer.Option(min=0, help="Folds of a cross-validation for the model's card; 0 leaves it out.")
    ] = 0,
    patience: Annotated[
        int, typer.Option(min=0, help="Stop after so many epochs without a better one; 0 goes on.")
    ] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Train a model on the `train` split of a dataset, with a head for every platform.

    A run that was cut short goes on where it stopped when the same command is given again.

    With --add-to, a new head on a trained model instead:
    tlp-tvm train data/mine --add-to epyc --platform mine --out runs/epyc-and-mine

    Example: tlp-tvm train datasets/epyc --out runs/epyc
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from tlp_tvm.dataset.records import MeasuredDataset
    from tlp_tvm.model.losses import Loss
    from tlp_tvm.model.tlp import Backbone
    from tlp_tvm.training.add_platform import Addition
    from tlp_tvm.training.loop import TrainSettings
    from tlp_tvm.training.run import Recipe, train_model

    training = TrainSettings(
        loss=Loss(_one_of("--loss", loss, [name.value for name in Loss])),
        epochs=epochs,
        patience=patience,
        seed=seed,
    )
    if replay and add_to is None:
        raise typer.BadParameter("expected --add-to with it, found none", param_hint="--replay")
    if add_to is not None:
        shape = {"--hidden": hidden, "--members": members, "--dropout": dropout}
        given = [name for name, value in shape.items() if value is not None] + ["--faithful"] * faithful
        if given:
            sentence = f"expected the shape to be that of {add_to}, found {given[0]}"
            raise typer.BadParameter(sentence, param_hint="--add-to")
        if platform is None or len(platform) != 1:
            sentence = f"expected one new --platform, found {', '.join(platform or ()) or 'none'}"
            raise typer.BadParameter(sentence, param_hint="--add-to")
        addition = Addition(platform[0], training, hold_out, replay)
        train_addition(add_to, dataset, out, addition, device=device, as_json=as_json)
        return
    recipe = Recipe(
        layout=_layout(layout),
        model={
            "backbone": Backbone(_one_of("--backbone", backbone, [b.value for b in Backbone])),
            **({} if hidden is None else {"hidden": hidden}),
            "members": members or (1 if faithful else 2),
            "layers": layers,
            "dropout": dropout if dropout is not None else (0.0 if faithful else 0.1),
            "faithful": faithful,
        },
        training=training,
        platforms=tuple(platform) if platform else None,
        hold_out=hold_out,
        folds=cross_validate,
    )
    if hidden is not None and hidden % 8:
        raise typer.BadParameter(f"expected a multiple of 8, found {hidden}", param_hint="--hidden")
    source = dataset[0] if len(dataset) == 1 else dataset
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, TextColumn("{task.description}"), console=progress_console)
    bar = progress.add_task("", total=epochs)

    def announce(data: MeasuredDataset, validation: MeasuredDataset | None) -> None:
        held_out = f", {len(validation.tasks)} held out" if validation else ""
        names = ", ".join(p.name for p in data.platforms)
        progress_console.print(f"{len(data)} programs of {len(data.tasks)} tasks{held_out} on {names}")
        progress.start()

    def advance(entry: dict[str, Any]) -> None:
        text = f"loss {entry['loss']:.3f}"
        if "validation" in entry:
            text += f", top-1 {entry['validation']['top1']:.3f}, top-5 {entry['validation']['top5']:.3f}"
        progress.update(bar, completed=entry["epoch"], description=text)

    def judge(done: int, total: int) -> None:
        progress.update(bar, completed=done, total=total, description="trainings of the cross-validation")

    try:
        config = train_model(
            source, out, recipe, device=device, on_data=announce, on_epoch=advance, on_fold=judge
        )
    finally:
        progress.stop()
    if as_json:
        print_json({"model": str(out), "recipe": _described(recipe), "metrics": config.card["metrics"]})
        return
    from tlp_tvm.cli.evaluate import table_of

    for split in ("validation", "test"):
        if rows := config.card["metrics"].get(split):
            console.print(table_of(rows, f"{split} tasks"))
    console.print(f"model and card: {out}")


def _layout(name: str) -> Any:
    from tlp_tvm.layout import FeatureLayout

    return FeatureLayout.load(name) if name.endswith(".json") else FeatureLayout.preset(name)


def _one_of(option: str, value: str, known: list[str]) -> str:
    if value not in known:
        raise typer.BadParameter(f"expected one of {', '.join(known)}, found {value}", param_hint=option)
    return value


def _described(recipe: Recipe) -> dict[str, Any]:
    return {"layout": recipe.layout.name, **recipe.training.to_dict(), "hold_out": recipe.hold_out}
