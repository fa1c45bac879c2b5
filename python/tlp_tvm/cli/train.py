"""`tlp-tvm train`: TLP, or MTL-TLP for a dataset of several platforms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tlp_tvm.cli.parts.added_platform import addition_of, train_addition
from tlp_tvm.cli.parts.common import JsonOption, layout_named, one_of, print_json
from tlp_tvm.cli.parts.ranking_tables import print_card
from tlp_tvm.cli.parts.trees import train_trees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tlp_tvm.training.runs.train_run import Recipe
    from tlp_tvm.training.train_settings import TrainSettings

Dataset = Annotated[list[Path], typer.Argument(help="A dataset folder, or record files.")]
Out = Annotated[Path, typer.Option(help="The model folder to write.")]
Layout = Annotated[
    str,
    typer.Option(
        help="ansor, paper-cpu, paper-gpu, metaschedule, or a layout's JSON file. Default: the layout of "
        "the dataset's framework."
    ),
]
Platforms = Annotated[
    list[str] | None, typer.Option(help="Train on this platform only. Repeatable. Default: all.")
]
Epochs = Annotated[int, typer.Option(min=1, help="Passes over the programs.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of weights, order and held-out tasks.")]
LossName = Annotated[str, typer.Option(help="mse, lambdarank or pairwise.")]
Hidden = Annotated[
    int | None, typer.Option(min=8, help="Width of the network, a multiple of 8. Default: the recipe's.")
]
Members = Annotated[
    int | None, typer.Option(min=1, help="Networks whose scores are averaged. Default: the recipe's.")
]
Faithful = Annotated[bool, typer.Option("--faithful", help="The network as published, weaknesses included.")]
AddTo = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Add a head for --platform to this model; the other heads score as before, bit for bit.",
    ),
]
HoldOut = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Hold out one task in this many to choose the epoch; 0 holds out none. Default: the dataset's "
        "validation split, or one in 5 if there is none.",
    ),
]
Folds = Annotated[
    int, typer.Option(min=0, help="Folds of a cross-validation for the model's card; 0 for none.")
]
BatchPrograms = Annotated[
    int, typer.Option(min=1, help="Approximate programs per batch, over all processes.")
]
PrecisionName = Annotated[
    str, typer.Option(help="auto, float32 or bfloat16; auto is bfloat16 on a GPU that has it.")
]
Stream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream",
        help="Read the programs of a built dataset from disk. Default: if it is large.",
    ),
]
Trees = Annotated[
    bool,
    typer.Option(
        "--trees",
        help="Instead of a network: fit trees on TVM's per-store features for the model at --out, which "
        "judge what it chooses without measuring. Lowers every program again: minutes.",
    ),
]
Networks = Annotated[
    list[Path] | None,
    typer.Option(
        exists=True,
        file_okay=False,
        help="With --trees: folder of the files of networks that are not built in. Repeatable.",
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


def train(
    dataset: Dataset,
    out: Out,
    layout: Layout = "",
    platform: Platforms = None,
    epochs: Epochs = 40,
    seed: Seed = 0,
    loss: LossName = "pairwise",
    hidden: Hidden = None,
    members: Members = None,
    faithful: Faithful = False,
    add_to: AddTo = None,
    hold_out: HoldOut = None,
    cross_validate: Folds = 0,
    batch: BatchPrograms = 256,
    precision: PrecisionName = "auto",
    stream: Stream = None,
    trees: Trees = False,
    networks: Networks = None,
    device: Device = "auto",
    as_json: JsonOption = False,
) -> None:
    """Train a model on the `train` split of a dataset, with a head per platform.

    If interrupted, rerun the command; the result is identical. To train in several processes:
    torchrun --nproc-per-node 2 --no-python tlp-tvm train ...

    With --add-to, train a new head on a trained model instead:
    tlp-tvm train data/mine --add-to x86 --platform mine --out runs/x86-and-mine

    With --trees, add trees to the model at --out, which judge what it chooses without measuring:
    tlp-tvm train datasets/epyc --trees --out runs/epyc

    Example: tlp-tvm train datasets/epyc --out runs/epyc
    """
    from tlp_tvm.dataset import framework_of_dataset
    from tlp_tvm.training.recipe import MODELS
    from tlp_tvm.training.runs.train_run import Recipe

    source = dataset[0] if len(dataset) == 1 else dataset
    if networks and not trees:
        sentence = "expected --trees, whose features are rebuilt from these files, found none; leave it out"
        raise typer.BadParameter(sentence, param_hint="--networks")
    if trees:
        if add_to is not None:
            sentence = f"expected trees for the model at --out, found --add-to {add_to}; call train twice"
            raise typer.BadParameter(sentence, param_hint="--trees")
        train_trees(source, out, platform, networks or (), seed=seed, as_json=as_json)
        return
    training = _training(loss, precision, epochs=epochs, batch_programs=batch, seed=seed)
    shape = {name: value for name, value in (("hidden", hidden), ("members", members)) if value is not None}
    if add_to is not None:
        others = {"faithful": faithful, "layout": layout, "cross-validate": cross_validate, "stream": stream}
        unused = [*shape, *(name for name, value in others.items() if value)]
        addition = addition_of(add_to, platform, training, hold_out, unused)
        train_addition(add_to, source, out, addition, device=device, as_json=as_json)
        return
    if hidden is not None and hidden % 8:
        raise typer.BadParameter(f"expected a multiple of 8, found {hidden}", param_hint="--hidden")
    recipe = Recipe(
        layout=layout_named(layout or framework_of_dataset(source)),
        model={**MODELS["paper" if faithful else "recipe"], **shape},
        training=training,
        platforms=tuple(platform) if platform else None,
        hold_out=hold_out,
        stream=stream,
        folds=cross_validate,
    )
    _train(source, out, recipe, device=device, as_json=as_json)


def _training(loss: str, precision: str, **numbers: int) -> TrainSettings:
    from tlp_tvm.model.losses import Loss
    from tlp_tvm.training.train_settings import Precision, TrainSettings

    return TrainSettings(
        loss=Loss(one_of("--loss", loss, [each.value for each in Loss])),
        precision=Precision(one_of("--precision", precision, [each.value for each in Precision])),
        **numbers,
    )


def _train(source: Path | Sequence[Path], out: Path, recipe: Recipe, *, device: str, as_json: bool) -> None:
    """Train, then print the card's metrics as tables or JSON."""
    from tlp_tvm.cli.parts.training_progress import TrainingProgress
    from tlp_tvm.training.peers import writes_here
    from tlp_tvm.training.runs.train_run import TrainCallbacks, train_model

    progress = TrainingProgress(silent=not writes_here())
    tell = TrainCallbacks(progress.data, progress.epoch, progress.batch, progress.fold)
    try:
        card = train_model(source, out, recipe, device=device, tell=tell).card
    finally:
        progress.stop()
    if not writes_here():
        return
    if not as_json:
        print_card(card["metrics"], out)
        return
    hold_out = card["training"]["hold_out"]
    described = {"layout": recipe.layout.name, **recipe.training.to_dict(), "hold_out": hold_out}
    print_json({"model": str(out), "recipe": described, "metrics": card["metrics"]})
