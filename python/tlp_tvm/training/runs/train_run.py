"""One training run from records to a model folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm.dataset.ranking import check_measured
from tlp_tvm.dataset.reading.holding_out import fold_of
from tlp_tvm.dataset.reading.measured import MeasuredDataset, load_measured
from tlp_tvm.errors import ModelFileError
from tlp_tvm.files import write_whole
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.card import card_text
from tlp_tvm.model.checkpoint import CONFIG, save_checkpoint
from tlp_tvm.model.config import ModelConfig, describe
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.epoch_log import board_of, need_tensorboard
from tlp_tvm.training.loop import BatchCallback, EpochCallback, train
from tlp_tvm.training.peers import joined
from tlp_tvm.training.runs.cross_validation import FoldCallback, cross_validate
from tlp_tvm.training.state import STATE
from tlp_tvm.training.train_settings import TrainSettings
from tlp_tvm.training.validation import card_rows

TRAIN_SPLIT = "train"
VALIDATION_SPLIT = "validation"
TEST_SPLIT = "test"
HOLD_OUT = 5
"""One training task in so many chooses the epoch where the dataset has no validation split."""
CARD = "CARD.md"
SCORED_AT_ONCE = 1 << 14
"""Programs whose embeddings are in memory together."""


@dataclass(frozen=True)
class Recipe:
    """What to train on what."""

    layout: FeatureLayout
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of `TLPSettings` that the layout leaves open."""
    training: TrainSettings = field(default_factory=TrainSettings)
    platforms: tuple[str, ...] | None = None
    """Platforms of a dataset folder, a head each; all of them when None."""
    hold_out: int | None = None
    """One training task in so many is held out to choose the epoch by; 0 holds out none and keeps the last
    epoch. None takes the dataset's validation split, or one task in `HOLD_OUT` where there is none."""
    stream: bool | None = None
    """Leave the programs of a built dataset on the disk; None does so for large ones."""
    folds: int = 0
    """Folds of a cross-validation over the training tasks, for the card; 0 leaves it out."""


DataCallback = Callable[[MeasuredDataset, MeasuredDataset | None], None]
"""Gets the tasks to train on and those held out."""


def train_model(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    recipe: Recipe,
    *,
    device: str = "auto",
    tensorboard: bool = False,
    on_data: DataCallback = lambda data, validation: None,
    on_epoch: EpochCallback = lambda entry: None,
    on_batch: BatchCallback = lambda done, total: None,
    on_fold: FoldCallback = lambda done, total: None,
) -> ModelConfig:
    """Train on the `train` split of a dataset and write a model folder; go on where a killed run stopped.

    Where `torchrun` started several processes they train together, to the same model as one (see
    `tlp_tvm.training.peers`); the first writes it.

    Args:
        source: a dataset folder, a log, or a list of logs.
        out: the folder to write; metrics.jsonl and metrics.csv in it have a line an epoch.
        recipe: what to train.
        device: "auto", or torch's name.
        tensorboard: write the metrics for TensorBoard too, to `out`/tensorboard.
        on_data: called with the training and validation tasks before the first epoch.
        on_epoch: called with every epoch's entry.
        on_batch: called with how many programs were trained on, and of how many in all epochs.
        on_fold: called with how many trainings of the cross-validation are done, and of how many.

    Returns:
        The model's description, with metrics on the validation tasks and on the `test` split if there is one.

    Raises:
        DatasetError: the dataset is missing, damaged or too small.
        ModelFileError: the folder holds a finished model, or another run.
        TrainingError: TensorBoard is wanted and not installed, or the loss is not finite.
    """
    folder = Path(out)
    if (folder / CONFIG).exists():
        raise ModelFileError(
            f"{folder}: expected a new folder, or that of a run cut short, found a finished model; choose "
            "another folder, or delete that one"
        )
    if tensorboard:
        need_tensorboard()
    measured = load_measured(source, recipe.layout, platforms=recipe.platforms, stream=recipe.stream)
    data, validation, hold_out = _held_out(measured, recipe)
    test = judged_split(measured)
    settings = TLPSettings.of_layout(recipe.layout, len(data.platforms), **recipe.model)
    on_data(data, validation)
    folder.mkdir(parents=True, exist_ok=True)
    with joined(device) as (peers, place):
        boards = [board_of(folder)] if tensorboard and peers.writes else []

        def tell(entry: dict[str, Any]) -> None:
            for callback in (*boards, on_epoch):
                callback(entry)

        trained = train(
            data,
            validation,
            settings,
            recipe.training,
            folder,
            device=str(place),
            peers=peers,
            on_epoch=tell,
            on_batch=on_batch,
        )
        bare = ModelConfig(recipe.layout, settings, data.platforms, {})
        network = TLP.with_weights(settings, trained.weights)
        model = ScoringModel(folder.name, bare, network).to(str(place))
        metrics = _metrics({"validation": validation, "test": test}, model)
        if recipe.folds:
            metrics["cross_validation"] = cross_validate(
                measured.of_split(TRAIN_SPLIT),
                recipe.model,
                recipe.training,
                folds=recipe.folds,
                device=str(place),
                peers=peers,
                on_fold=on_fold,
            ).to_dict()
    config = describe(
        recipe.layout,
        settings,
        data.platforms,
        data=data_entry(measured.digest, data, validation),
        training=recipe.training.to_dict() | {"hold_out": hold_out, "best_epoch": trained.best_epoch},
        seed=recipe.training.seed,
        metrics=metrics,
    )
    if not peers.writes:
        return config
    parameters = sum(tensor.numel() for tensor in trained.weights.values())
    write_whole(folder / CARD, card_text(folder.name, config.card, parameters))
    config = save_checkpoint(folder, config, trained.weights)
    (folder / STATE).unlink(missing_ok=True)
    return config


def _held_out(
    measured: MeasuredDataset, recipe: Recipe
) -> tuple[MeasuredDataset, MeasuredDataset | None, int | str]:
    """The tasks to train on, those that choose the epoch, and what to say of them in the card."""
    data = measured.of_split(TRAIN_SPLIT)
    if recipe.hold_out is None and VALIDATION_SPLIT in measured.splits:
        validation = measured.of_split(VALIDATION_SPLIT)
        if len(validation):  # tasks may lack programs on the chosen platforms
            return data, validation, f"split {VALIDATION_SPLIT}"
    hold_out = HOLD_OUT if recipe.hold_out is None else recipe.hold_out
    if not hold_out:
        return data, None, 0
    return (*fold_of(data, 0, hold_out, recipe.training.seed), hold_out)


def judged_split(measured: MeasuredDataset) -> MeasuredDataset | None:
    """What the card judges; None where the dataset has no such split.

    Raises:
        DatasetError: a listed task of it has no program that ran on a platform; said before any training.
    """
    if TEST_SPLIT not in measured.splits:
        return None
    test = measured.of_split(TEST_SPLIT)
    check_measured(test)
    return test


def _metrics(parts: Mapping[str, MeasuredDataset | None], model: ScoringModel) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for name, part in parts.items():
        if part is not None:
            begins = range(0, len(part), SCORED_AT_ONCE)
            scores = [model.score_all(part.features(slice(i, i + SCORED_AT_ONCE))) for i in begins]
            rows = card_rows(part, np.concatenate(scores), chose=name == "validation")
            metrics[name] = [row.to_dict() for row in rows]
    return metrics


def data_entry(digest: str, data: MeasuredDataset, validation: MeasuredDataset | None) -> dict[str, Any]:
    """What a card says of the data that a model was trained on.

    Args:
        digest: of the whole dataset.
        data: the tasks that were learned from.
        validation: those that chose the epoch.
    """
    return {
        "framework": data.layout.framework,
        "digest": digest,
        "split": TRAIN_SPLIT,
        "tasks": len(data.tasks),
        "programs": len(data),
        "validation_tasks": len(validation.tasks) if validation is not None else 0,
    }
