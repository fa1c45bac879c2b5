"""`tlp-tvm train`: TLP, or MTL-TLP for a dataset of several platforms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tlp_tvm.cli.parts.added_platform import train_addition
from tlp_tvm.cli.parts.common import JsonOption, console, layout_named, one_of, print_json, print_table

if TYPE_CHECKING:
    from tlp_tvm.model.config import ModelConfig
    from tlp_tvm.training.runs.train_run import Recipe

LOSSES = "mse, lambdarank or pairwise"
PRECISIONS = "auto, float32 or bfloat16; auto is bfloat16 on a GPU that has it."


def train(
    dataset: Annotated[list[Path], typer.Argument(help="A dataset folder, or record files.")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    layout: Annotated[
        str,
        typer.Option(
            help="ansor, paper-cpu, paper-gpu, metaschedule, or a layout's JSON file. Default: the layout of "
            "the dataset's framework."
        ),
    ] = "",
    platform: Annotated[
        list[str] | None, typer.Option(help="Train on this platform only. Repeatable. Default: all.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the programs.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights, order and held-out tasks.")] = 0,
    loss: Annotated[str, typer.Option(help=LOSSES)] = "pairwise",
    hidden: Annotated[
        int | None,
        typer.Option(min=8, help="Width of the network, a multiple of 8. Default: the recipe's."),
    ] = None,
    members: Annotated[
        int | None, typer.Option(min=1, help="Networks whose scores are averaged. Default: the recipe's.")
    ] = None,
    dropout: Annotated[
        float | None,
        typer.Option(min=0.0, max=0.9, help="Share of dropped activations. Default: the recipe's."),
    ] = None,
    faithful: Annotated[
        bool, typer.Option("--faithful", help="The network as published, weaknesses included.")
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
        int | None,
        typer.Option(
            min=0,
            help="Hold out one task in this many to choose the epoch; 0 holds out none. Default: the "
            "dataset's validation split, or one in 5 if there is none.",
        ),
    ] = None,
    cross_validate: Annotated[
        int, typer.Option(min=0, help="Folds of a cross-validation for the model's card; 0 for none.")
    ] = 0,
    patience: Annotated[
        int, typer.Option(min=0, help="Stop after this many epochs without a better one; 0 for never.")
    ] = 0,
    batch: Annotated[
        int, typer.Option(min=1, help="Approximate programs per batch, over all processes.")
    ] = 256,
    precision: Annotated[str, typer.Option(help=PRECISIONS)] = "auto",
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Read the programs of a built dataset from disk. Default: if it is large.",
        ),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write the metrics for TensorBoard.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Train a model on the `train` split of a dataset, with a head per platform.

    If interrupted, rerun the command; the result is identical. To train in several processes:
    torchrun --nproc-per-node 2 --no-python tlp-tvm train ...

    With --add-to, train a new head on a trained model instead:
    tlp-tvm train data/mine --add-to epyc --platform mine --out runs/epyc-and-mine

    Example: tlp-tvm train datasets/epyc --out runs/epyc
    """
    from tlp_tvm.cli.parts.training_progress import TrainingProgress
    from tlp_tvm.dataset import framework_of_dataset
    from tlp_tvm.model.losses import Loss
    from tlp_tvm.training.peers import writes_here
    from tlp_tvm.training.recipe import MODELS
    from tlp_tvm.training.runs.add_platform import Addition
    from tlp_tvm.training.runs.splits import HOLD_OUT
    from tlp_tvm.training.runs.train_run import Recipe, TrainCallbacks, train_model
    from tlp_tvm.training.train_settings import Precision, TrainSettings

    given = {"hidden": hidden, "members": members, "dropout": dropout}
    training = TrainSettings(
        loss=Loss(one_of("--loss", loss, [name.value for name in Loss])),
        epochs=epochs,
        batch_programs=batch,
        patience=patience,
        seed=seed,
        precision=Precision(one_of("--precision", precision, [each.value for each in Precision])),
    )
    if replay and add_to is None:
        raise typer.BadParameter("expected --add-to with it, found none", param_hint="--replay")
    if add_to is not None:
        shape = [f"--{name}" for name, value in given.items() if value is not None] + [
            "--faithful"
        ] * faithful
        if shape:
            sentence = f"expected the shape to be that of {add_to}, found {shape[0]}"
            raise typer.BadParameter(sentence, param_hint="--add-to")
        if platform is None or len(platform) != 1:
            sentence = f"expected one new --platform, found {', '.join(platform or ()) or 'none'}"
            raise typer.BadParameter(sentence, param_hint="--add-to")
        addition = Addition(platform[0], training, HOLD_OUT if hold_out is None else hold_out, replay)
        train_addition(add_to, dataset, out, addition, device=device, as_json=as_json)
        return
    source = dataset[0] if len(dataset) == 1 else dataset
    recipe = Recipe(
        layout=layout_named(layout or framework_of_dataset(source)),
        model={
            **MODELS["paper" if faithful else "recipe"],
            **{name: value for name, value in given.items() if value is not None},
        },
        training=training,
        platforms=tuple(platform) if platform else None,
        hold_out=hold_out,
        stream=stream,
        folds=cross_validate,
        tensorboard=tensorboard,
    )
    if hidden is not None and hidden % 8:
        raise typer.BadParameter(f"expected a multiple of 8, found {hidden}", param_hint="--hidden")
    progress = TrainingProgress(silent=not writes_here())
    try:
        config = train_model(
            source,
            out,
            recipe,
            device=device,
            tell=TrainCallbacks(progress.data, progress.epoch, progress.batch, progress.fold),
        )
    finally:
        progress.stop()
    if not writes_here():
        return
    if as_json:
        print_json(
            {"model": str(out), "recipe": _described(recipe, config), "metrics": config.card["metrics"]}
        )
        return
    from tlp_tvm.cli.evaluate import table_of

    for split in ("validation", "test"):
        if rows := config.card["metrics"].get(split):
            print_table(table_of(rows, f"{split} tasks"))
    console.print(f"model and card: {out}")


def _described(recipe: Recipe, config: ModelConfig) -> dict[str, Any]:
    hold_out = config.card["training"]["hold_out"]
    return {"layout": recipe.layout.name, **recipe.training.to_dict(), "hold_out": hold_out}
