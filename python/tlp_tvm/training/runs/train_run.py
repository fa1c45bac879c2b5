"""One training run from records to a model folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tlp_tvm.dataset.reading.holding_out import TRAIN_SPLIT
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import TrainingError
from tlp_tvm.folder_lock import held
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.config import ModelConfig, describe
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.epoch_log import BatchCallback, EpochCallback
from tlp_tvm.training.loop import train
from tlp_tvm.training.peers import Peers, joined
from tlp_tvm.training.runs.cross_validation import FoldCallback, cross_validate
from tlp_tvm.training.runs.model_folder import card_rows, check_unfinished, data_entry, finish
from tlp_tvm.training.runs.splits import judged_split, learned_and_held_out
from tlp_tvm.training.state import Trained
from tlp_tvm.training.train_settings import TrainSettings

DataCallback = Callable[[MeasuredDataset, MeasuredDataset | None], None]
"""Gets the tasks to train on and those held out."""


@dataclass(frozen=True)
class Recipe:
    """What to train on what."""

    layout: FeatureLayout
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of `TLPSettings` that the layout leaves open."""
    training: TrainSettings = field(default_factory=TrainSettings)
    platforms: tuple[str, ...] | None = None
    """Platforms of a dataset folder, one head each; all of them when None."""
    hold_out: int | None = None
    """As for `learned_and_held_out`."""
    stream: bool | None = None
    """Leave the programs of a built dataset on the disk; None does so for large ones."""
    folds: int = 0
    """Folds of a cross-validation over the training tasks, for the card; 0 leaves it out."""


@dataclass(frozen=True)
class TrainCallbacks:
    """Who hears how far a run is."""

    data: DataCallback = lambda data, validation: None
    """Called once, before the first epoch."""
    epoch: EpochCallback = lambda entry: None
    batch: BatchCallback = lambda done, total: None
    fold: FoldCallback = lambda done, total: None
    """Gets how many trainings of the cross-validation are done, and of how many."""


def train_model(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    recipe: Recipe,
    *,
    device: str = "auto",
    tell: TrainCallbacks = TrainCallbacks(),
) -> ModelConfig:
    """Train on the `train` split of a dataset and write a model folder, or resume an interrupted run in it.

    Processes that `torchrun` started train together, to the same model as one (`tlp_tvm.training.peers`);
    the first of them writes it.

    Args:
        source: a dataset folder, a log, or a list of logs.
        out: the folder to write; metrics.jsonl and metrics.csv in it have one line per epoch.
        recipe: what to train.
        device: "auto", or torch's name.
        tell: hears how far the run is.

    Returns:
        The model's description, with metrics on the validation tasks and on the `test` split if there is one.

    Raises:
        DatasetError: the dataset is missing, damaged or too small.
        ModelFileError: the folder holds a finished model, or another run.
        TrainingError: the loss is not finite, or another process trains into the folder.
    """
    folder = Path(out)
    check_unfinished(folder)
    run = _Run.read(source, folder, recipe)
    tell.data(run.data, run.validation)
    folder.mkdir(parents=True, exist_ok=True)
    with joined(device) as (peers, place), ExitStack() as stack:
        if peers.writes:
            stack.enter_context(held(folder, TrainingError, "choose another `out`"))
        trained = run.train(str(place), peers, tell)
        metrics = run.metrics(trained, str(place), peers, tell)
        config = run.describe(trained, metrics)
        return finish(folder, config, trained.weights) if peers.writes else config


@dataclass(frozen=True)
class _Run:
    """A recipe and the tasks of its dataset."""

    folder: Path
    recipe: Recipe
    settings: TLPSettings
    measured: MeasuredDataset
    data: MeasuredDataset
    validation: MeasuredDataset | None
    hold_out: int | str
    test: MeasuredDataset | None

    @classmethod
    def read(
        cls, source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], folder: Path, recipe: Recipe
    ) -> _Run:
        measured = load_measured(source, recipe.layout, platforms=recipe.platforms, stream=recipe.stream)
        data, validation, hold_out = learned_and_held_out(measured, recipe.hold_out, recipe.training.seed)
        test = judged_split(measured)
        settings = TLPSettings.of_layout(recipe.layout, len(data.platforms), **recipe.model)
        return cls(folder, recipe, settings, measured, data, validation, hold_out, test)

    def train(self, device: str, peers: Peers, tell: TrainCallbacks) -> Trained:
        return train(
            self.data,
            self.validation,
            self.settings,
            self.recipe.training,
            self.folder,
            device=device,
            peers=peers,
            on_epoch=tell.epoch,
            on_batch=tell.batch,
        )

    def metrics(self, trained: Trained, device: str, peers: Peers, tell: TrainCallbacks) -> dict[str, Any]:
        bare = ModelConfig(self.recipe.layout, self.settings, self.data.platforms, {})
        network = TLP.with_weights(self.settings, trained.weights)
        model = ScoringModel(self.folder.name, bare, network).to(device)
        judged = {"validation": self.validation, "test": self.test}
        metrics: dict[str, Any] = {
            name: card_rows(part, model, chose=name == "validation")
            for name, part in judged.items()
            if part is not None
        }
        if self.recipe.folds:
            metrics["cross_validation"] = cross_validate(
                self.measured.of_split(TRAIN_SPLIT),
                self.recipe.model,
                self.recipe.training,
                folds=self.recipe.folds,
                device=device,
                peers=peers,
                on_fold=tell.fold,
            ).to_dict()
        return metrics

    def describe(self, trained: Trained, metrics: dict[str, Any]) -> ModelConfig:
        training = self.recipe.training
        return describe(
            self.recipe.layout,
            self.settings,
            self.data.platforms,
            data=data_entry(self.measured.digest, self.data, self.validation),
            training=training.to_dict() | {"hold_out": self.hold_out, "best_epoch": trained.best_epoch},
            seed=training.seed,
            metrics=metrics,
        )
