"""One training run from records to a model folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tlp_tvm.dataset.records import MeasuredDataset, load_measured
from tlp_tvm.dataset.splits import fold_of
from tlp_tvm.errors import ModelFileError
from tlp_tvm.evaluation.report import MEAN_OVER_TASKS, evaluate
from tlp_tvm.files import write_whole
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.card import card_text
from tlp_tvm.model.checkpoint import CONFIG, save_checkpoint
from tlp_tvm.model.config import ModelConfig, describe
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.cross_validation import FoldCallback, cross_validate
from tlp_tvm.training.loop import EpochCallback, TrainSettings, train
from tlp_tvm.training.state import STATE

TRAIN_SPLIT = "train"
TEST_SPLIT = "test"
CARD = "CARD.md"


@dataclass(frozen=True)
class Recipe:
    """What to train on what."""

    layout: FeatureLayout
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of `TLPSettings` that the layout leaves open."""
    training: TrainSettings = field(default_factory=TrainSettings)
    platforms: tuple[str, ...] | None = None
    """Platforms of a dataset folder, a head each; all of them when None."""
    hold_out: int = 5
    """One task in so many is held out to choose the epoch by; 0 trains on all tasks to the last epoch."""
    folds: int = 0
    """Folds of a cross-validation over the training tasks, for the card; 0 leaves it out."""


def train_model(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    recipe: Recipe,
    *,
    device: str = "auto",
    on_data: Callable[[MeasuredDataset, MeasuredDataset | None], None] = lambda data, validation: None,
    on_epoch: EpochCallback = lambda entry: None,
    on_fold: FoldCallback = lambda done, total: None,
) -> ModelConfig:
    """Train on the `train` split of a dataset and write a model folder; go on where a killed run stopped.

    Args:
        source: a dataset folder, a log, or a list of logs.
        out: the folder to write; metrics.jsonl in it has a line an epoch.
        recipe: what to train.
        device: "auto", or torch's name.
        on_data: called with the training and validation tasks before the first epoch.
        on_epoch: called with every epoch's entry.
        on_fold: called with how many trainings of the cross-validation are done, and of how many.

    Returns:
        The model's description, with metrics on the validation tasks and on the `test` split if there is one.

    Raises:
        DatasetError: the dataset is missing, damaged or too small.
        ModelFileError: the folder holds a finished model, or another run.
    """
    folder = Path(out)
    if (folder / CONFIG).exists():
        raise ModelFileError(
            f"{folder}: expected a new folder, or that of a run cut short, found a finished model; choose "
            "another folder, or delete that one"
        )
    measured = load_measured(source, recipe.layout, platforms=recipe.platforms)
    data = measured.of_split(TRAIN_SPLIT)
    train_data, validation = data, None
    if recipe.hold_out:
        train_data, validation = fold_of(data, 0, recipe.hold_out, recipe.training.seed)
    settings = TLPSettings.of_layout(recipe.layout, len(data.platforms), **recipe.model)
    on_data(train_data, validation)
    folder.mkdir(parents=True, exist_ok=True)
    trained = train(
        train_data, validation, settings, recipe.training, folder, device=device, on_epoch=on_epoch
    )
    bare = ModelConfig(recipe.layout, settings, data.platforms, {})
    model = ScoringModel(folder.name, bare, TLP.with_weights(settings, trained.weights))
    metrics = _metrics(measured, validation, model)
    if recipe.folds:
        metrics["cross_validation"] = cross_validate(
            data, recipe.model, recipe.training, folds=recipe.folds, device=device, on_fold=on_fold
        ).to_dict()
    config = describe(
        recipe.layout,
        settings,
        data.platforms,
        data={
            "digest": measured.digest,
            "split": TRAIN_SPLIT,
            "tasks": len(train_data.tasks),
            "programs": len(train_data),
            "validation_tasks": len(validation.tasks) if validation is not None else 0,
        },
        training=recipe.training.to_dict() | {"hold_out": recipe.hold_out, "best_epoch": trained.best_epoch},
        seed=recipe.training.seed,
        metrics=metrics,
    )
    parameters = sum(tensor.numel() for tensor in trained.weights.values())
    write_whole(folder / CARD, card_text(folder.name, config.card, parameters))
    config = save_checkpoint(folder, config, trained.weights)
    (folder / STATE).unlink(missing_ok=True)
    return config


def _metrics(
    measured: MeasuredDataset, validation: MeasuredDataset | None, model: ScoringModel
) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    parts = {"validation": validation}
    if TEST_SPLIT in measured.splits:
        parts["test"] = measured.of_split(TEST_SPLIT)
    for name, part in parts.items():
        if part is not None:
            rows = evaluate(part, model.score_all(part.features()))
            if name == "validation":
                rows = [row for row in rows if row.network == MEAN_OVER_TASKS]
            metrics[name] = [row.to_dict() for row in rows]
    return metrics
