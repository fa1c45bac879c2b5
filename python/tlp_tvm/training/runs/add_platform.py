"""A platform more for a trained model: a new head beside the old ones, which need not forget."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm.dataset.reading.holding_out import fold_of
from tlp_tvm.dataset.reading.measured import MeasuredDataset, load_measured
from tlp_tvm.errors import ModelFileError
from tlp_tvm.files import write_whole
from tlp_tvm.model.card import card_text
from tlp_tvm.model.checkpoint import CONFIG, save_checkpoint
from tlp_tvm.model.config import ModelConfig, describe
from tlp_tvm.model.platform import Platform
from tlp_tvm.model.scoring import ScoringModel, network_of, pick_device
from tlp_tvm.model.tlp import TLP
from tlp_tvm.training.loop import EpochCallback, TrainSettings, train
from tlp_tvm.training.runs.new_head import with_new_head
from tlp_tvm.training.runs.train_run import CARD, TRAIN_SPLIT, data_entry, judged_split
from tlp_tvm.training.start import FINETUNE_RATE, Start, long_enough
from tlp_tvm.training.state import STATE
from tlp_tvm.training.validation import card_rows

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class Addition:
    """What to add and how."""

    platform: str
    """The new one."""
    training: TrainSettings = field(default_factory=TrainSettings)
    hold_out: int = 5
    """One task in so many is held out to choose the epoch by; 0 trains on all tasks to the last epoch."""
    replay: bool = False
    """Train everything, on the labels of all platforms together, rather than the new head alone."""


def add_platform(
    model: ScoringModel,
    source: Source,
    out: str | os.PathLike[str],
    addition: Addition,
    *,
    device: str = "auto",
    on_data: Callable[[MeasuredDataset, MeasuredDataset | None, TrainSettings], None] = lambda *_: None,
    on_epoch: EpochCallback = lambda entry: None,
) -> ModelConfig:
    """Write a model with one head more; go on where a killed run stopped.

    The new head starts as the mean of the others. It alone is trained, so that the scores of the others stay
    as they are, bit for bit; or all are, with `replay`, and the others' scores change.

    Args:
        model: what to add to; it is left as it is.
        source: measured programs of the new platform; with `replay` of all the model's platforms too.
        out: the folder to write.
        addition: what to add and how.
        device: "auto", or torch's name.
        on_data: called with the training and validation tasks and how they are trained on, first of all.
        on_epoch: called with every epoch's entry.

    Returns:
        The new model's description.

    Raises:
        DatasetError: the dataset is missing, damaged or too small, or lacks a platform.
        ModelFileError: the model is no checkpoint or has that platform, or the folder holds another model.
    """
    folder = Path(out)
    _check(model, folder, addition)
    measured = _measured(model, source, addition)
    data, validation = measured.of_split(TRAIN_SPLIT), None
    if addition.hold_out:
        data, validation = fold_of(data, 0, addition.hold_out, addition.training.seed)
    # Of old heads that score as before the card says what it said of them.
    heads = slice(0 if addition.replay else len(model.platforms), None)
    judged = {
        "validation": None if validation is None else _on(validation, heads),
        "test": judged_split(_on(measured, heads)),
    }
    training = addition.training
    if addition.replay:
        training = replace(training, learning_rate=min(training.learning_rate, FINETUNE_RATE))
    training = long_enough(training, len(data))
    on_data(data, validation, training)
    old = {name: tensor.cpu() for name, tensor in model.network.state_dict().items()}
    settings, grown, fixed = with_new_head(
        model.config.settings, old, data, seed=training.seed, device=pick_device(device)
    )
    start = Start(grown, frozenset() if addition.replay else fixed)
    folder.mkdir(parents=True, exist_ok=True)
    trained = train(
        data, validation, settings, training, folder, device=device, start=start, on_epoch=on_epoch
    )
    weights = {name: tensor.cpu() for name, tensor in trained.weights.items()}
    if not addition.replay:
        weights |= old
    bare = ModelConfig(model.layout, settings, measured.platforms, {})
    result = ScoringModel(folder.name, bare, TLP.with_weights(settings, weights)).to(device)
    before = {} if addition.replay else model.card["metrics"]
    metrics = {
        name: [*before.get(name, []), *_rows(part, result, heads, chose=name == "validation")]
        for name, part in judged.items()
        if part is not None
    }
    described = describe(
        model.layout,
        settings,
        measured.platforms,
        data=data_entry(measured.digest, data, validation),
        training=training.to_dict() | {"hold_out": addition.hold_out, "best_epoch": trained.best_epoch},
        seed=training.seed,
        metrics=metrics,
    )
    added = {
        "platform": addition.platform,
        "replay": addition.replay,
        "to": {key: model.card.get(key) for key in ("weights", "data", "training", "seed", "added")},
    }
    config = replace(described, card=described.card | {"added": added})
    parameters = sum(tensor.numel() for tensor in weights.values())
    write_whole(folder / CARD, card_text(folder.name, config.card, parameters))
    config = save_checkpoint(folder, config, weights)
    (folder / STATE).unlink(missing_ok=True)
    return config


def _check(model: ScoringModel, folder: Path, addition: Addition) -> None:
    network_of(model, "--add-to")
    if addition.platform in model.platforms:
        raise ModelFileError(
            f"--add-to {model.name}: expected a platform that is none of {', '.join(model.platforms)}, found "
            f'"{addition.platform}"; choose a new name'
        )
    if (folder / CONFIG).exists():
        raise ModelFileError(
            f"{folder}: expected a new folder, or that of a run cut short, found a finished model; choose "
            "another folder, or delete that one"
        )


def _measured(model: ScoringModel, source: Source, addition: Addition) -> MeasuredDataset:
    """Programs with a column a head; without replay those of the old heads are empty."""
    if addition.replay:
        names = (*model.platforms, addition.platform)
        return load_measured(source, model.layout, platforms=names)
    measured = load_measured(source, model.layout, platforms=(addition.platform,))
    old = tuple(map(Platform, model.platforms, model.targets))
    unknown = np.full((len(measured), len(old)), np.nan)
    return replace(
        measured,
        platforms=(*old, measured.platforms[0]),
        latencies=np.concatenate([unknown, measured.latencies], axis=1),
    )


def _on(dataset: MeasuredDataset, heads: slice) -> MeasuredDataset:
    return replace(dataset, platforms=dataset.platforms[heads], latencies=dataset.latencies[:, heads])


def _rows(part: MeasuredDataset, model: ScoringModel, heads: slice, *, chose: bool) -> list[dict[str, Any]]:
    scores = model.score_all(part.features())[:, heads]
    return [row.to_dict() for row in card_rows(part, scores, chose=chose)]
