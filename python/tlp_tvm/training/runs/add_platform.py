"""Adds a platform to a trained model: a new head beside the old ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from tlp_tvm.dataset.reading.holding_out import TRAIN_SPLIT, fold_of
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import ModelFileError
from tlp_tvm.model.config import ModelConfig, describe
from tlp_tvm.model.platform import Platform
from tlp_tvm.model.scoring import ScoringModel, network_of, pick_device
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.epoch_log import EpochCallback
from tlp_tvm.training.loop import train
from tlp_tvm.training.runs.model_folder import card_rows, check_unfinished, data_entry, finish
from tlp_tvm.training.runs.new_head import with_new_head
from tlp_tvm.training.runs.splits import HOLD_OUT, judged_split
from tlp_tvm.training.start import Start, long_enough
from tlp_tvm.training.state import Trained
from tlp_tvm.training.train_settings import TrainSettings

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

AdditionCallback = Callable[[MeasuredDataset, MeasuredDataset | None, TrainSettings], None]
"""Gets the tasks to train on, those held out, and how they are trained on."""


@dataclass(frozen=True)
class Addition:
    """What to add and how."""

    platform: str
    """The new one."""
    training: TrainSettings = field(default_factory=TrainSettings)
    hold_out: int = HOLD_OUT
    """One task in this many is held out to choose the epoch; 0 trains on all tasks to the last epoch."""


def add_platform(
    model: ScoringModel,
    source: Source,
    out: str | os.PathLike[str],
    addition: Addition,
    *,
    device: str = "auto",
    on_data: AdditionCallback = lambda *_: None,
    on_epoch: EpochCallback = lambda entry: None,
) -> ModelConfig:
    """Write a model with one head more, or resume an interrupted run in its folder.

    The new head starts as the mean of the others and is trained alone, so the others score as before, bit for
    bit.

    Args:
        model: what to add to; it is left as it is.
        source: measured programs of the new platform.
        out: the folder to write.
        addition: what to add and how.
        device: "auto", or torch's name.
        on_data: called once, before the training.
        on_epoch: called with every epoch's entry.

    Returns:
        The new model's description.

    Raises:
        DatasetError: the dataset is missing, damaged or too small, or lacks a platform.
        ModelFileError: the model is no checkpoint or has that platform, or the folder holds another model.
        TrainingError: the loss is not finite.
    """
    folder = Path(out)
    network_of(model, "`add_to`")
    if addition.platform in model.platforms:
        raise ModelFileError(
            f"`add_to` {model.name}: expected a platform that is none of {', '.join(model.platforms)}, found "
            f'"{addition.platform}"; choose a new name'
        )
    check_unfinished(folder)
    run = _Run.read(model, source, addition)
    on_data(run.data, run.validation, run.training)
    settings, start = run.start(pick_device(device))
    folder.mkdir(parents=True, exist_ok=True)
    trained = train(
        *(run.data, run.validation, settings, run.training, folder),
        device=device,
        start=start,
        on_epoch=on_epoch,
    )
    weights = run.weights(trained)
    bare = ModelConfig(model.layout, settings, run.measured.platforms, {})
    grown = ScoringModel(folder.name, bare, TLP.with_weights(settings, weights)).to(device)
    return finish(folder, run.describe(settings, trained, run.metrics(grown)), weights)


@dataclass(frozen=True)
class _Run:
    """An addition and the tasks of its dataset."""

    model: ScoringModel
    addition: Addition
    training: TrainSettings
    """Of the addition, long enough for few programs."""
    measured: MeasuredDataset
    data: MeasuredDataset
    validation: MeasuredDataset | None
    heads: slice
    """The new one: it alone is trained and judged. Of the others the card says what it said."""
    judged: dict[str, MeasuredDataset | None]

    @classmethod
    def read(cls, model: ScoringModel, source: Source, addition: Addition) -> _Run:
        measured = _measured(model, source, addition.platform)
        data, validation = measured.of_split(TRAIN_SPLIT), None
        if addition.hold_out:
            data, validation = fold_of(data, 0, addition.hold_out, addition.training.seed)
        heads = slice(len(model.platforms), None)
        judged = {
            "validation": None if validation is None else _on(validation, heads),
            "test": judged_split(_on(measured, heads)),
        }
        training = long_enough(addition.training, len(data))
        return cls(model, addition, training, measured, data, validation, heads, judged)

    @property
    def old(self) -> dict[str, Tensor]:
        """The weights of the model before, on the CPU."""
        return {name: tensor.cpu() for name, tensor in self.model.network.state_dict().items()}

    def start(self, device: Any) -> tuple[TLPSettings, Start]:
        settings, grown, fixed = with_new_head(
            self.model.config.settings, self.old, self.data, seed=self.training.seed, device=device
        )
        return settings, Start(grown, fixed)

    def weights(self, trained: Trained) -> dict[str, Tensor]:
        return {name: tensor.cpu() for name, tensor in trained.weights.items()} | self.old

    def metrics(self, grown: ScoringModel) -> dict[str, Any]:
        before = self.model.card["metrics"]
        return {
            name: [
                *before.get(name, []),
                *card_rows(part, grown, chose=name == "validation", heads=self.heads),
            ]
            for name, part in self.judged.items()
            if part is not None
        }

    def describe(self, settings: TLPSettings, trained: Trained, metrics: dict[str, Any]) -> ModelConfig:
        training, addition = self.training, self.addition
        described = describe(
            self.model.layout,
            settings,
            self.measured.platforms,
            data=data_entry(self.measured.digest, self.data, self.validation),
            training=training.to_dict() | {"hold_out": addition.hold_out, "best_epoch": trained.best_epoch},
            seed=training.seed,
            metrics=metrics,
        )
        before = {key: self.model.card.get(key) for key in ("weights", "data", "training", "seed", "added")}
        added = {"platform": addition.platform, "replay": False, "to": before}
        return replace(described, card=described.card | {"added": added})


def _measured(model: ScoringModel, source: Source, platform: str) -> MeasuredDataset:
    """Programs with a column per head; the columns of the old heads are empty."""
    measured = load_measured(source, model.layout, platforms=(platform,))
    old = tuple(map(Platform, model.platforms, model.targets))
    unknown = np.full((len(measured), len(old)), np.nan)
    return replace(
        measured,
        platforms=(*old, measured.platforms[0]),
        latencies=np.concatenate([unknown, measured.latencies], axis=1),
    )


def _on(dataset: MeasuredDataset, heads: slice) -> MeasuredDataset:
    return replace(dataset, platforms=dataset.platforms[heads], latencies=dataset.latencies[:, heads])
