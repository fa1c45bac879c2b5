"""The training loop: epochs of batches of whole lists, the best epoch, and a state to go on from."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import TrainingError
from tlp_tvm.model.scoring import pick_device
from tlp_tvm.model.tlp import TLPSettings
from tlp_tvm.training.batches import batch_of, epoch_of, labelled_in, made_ahead
from tlp_tvm.training.epoch_log import write_metrics
from tlp_tvm.training.learner import Learner, copy_of
from tlp_tvm.training.peers import ALONE, Peers
from tlp_tvm.training.start import Start
from tlp_tvm.training.state import TrainState, adam_tensors, restore_adam
from tlp_tvm.training.train_settings import TrainSettings
from tlp_tvm.training.validation import validate

SAVE_SECONDS = 60.0
"""A kill costs about as much of an epoch."""


@dataclass(frozen=True)
class Trained:
    """The outcome of a run."""

    weights: dict[str, Tensor]
    """Of the best epoch by validation; of the last where nothing was held out. On the CPU."""
    best_epoch: int
    history: list[dict[str, Any]]


EpochCallback = Callable[[dict[str, Any]], None]
"""Gets the entry of a finished epoch."""

BatchCallback = Callable[[int, int], None]
"""Gets how many programs were trained on, counting each once an epoch, and of how many. Those
without a label on any platform are left out."""


def train(
    dataset: MeasuredDataset,
    validation: MeasuredDataset | None,
    model_settings: TLPSettings,
    settings: TrainSettings,
    folder: Path,
    *,
    device: str = "auto",
    peers: Peers = ALONE,
    start: Start | None = None,
    on_epoch: EpochCallback = lambda entry: None,
    on_batch: BatchCallback = lambda done, total: None,
) -> Trained:
    """Train a model, or go on with a run that was cut short in the same folder: to the same numbers.

    Args:
        dataset: tasks to learn from.
        validation: tasks held out to choose the epoch by; None keeps the last epoch.
        model_settings: the network; one head a platform of the dataset.
        settings: how it is trained.
        folder: gets metrics.jsonl and metrics.csv, a line an epoch, and the state that a killed run goes on
            from, written every epoch and every minute.
        device: "auto", or torch's name.
        peers: the processes that train together; all of them call this, and get the same.
        start: weights to begin with; random ones when None.
        on_epoch: called with every finished epoch's entry, those of an earlier run first.
        on_batch: called before the first batch and after each.

    Raises:
        ModelFileError: the folder holds the state of another run.
        TrainingError: the loss of an epoch is not finite.
    """
    place = pick_device(device)
    fingerprint = _fingerprint(dataset, validation, model_settings, settings, start)
    learner = Learner(model_settings, settings, place, peers, start)
    state = TrainState.load(folder, fingerprint)
    peers.wait()  # nobody writes before all have read
    if state is None:
        state = TrainState(learner.network.state_dict(), learner.average, copy_of(learner.average))
    else:
        learner.network.load_state_dict(state.network)
        restore_adam(learner.optimizer, state.optimizer)
        learner.average = {name: tensor.to(place) for name, tensor in state.average.items()}
        state.network, state.average = learner.network.state_dict(), learner.average
        if peers.writes:
            write_metrics(folder, state.history, state.timings)  # a kill may have come before the last line

    def save() -> None:
        if peers.writes:
            state.optimizer = adam_tensors(learner.optimizer)
            state.save(folder, fingerprint)

    chosen = labelled_in(dataset)
    for past in state.history:
        on_epoch(past)
    while len(state.history) < settings.epochs and not _out_of_patience(state, settings):
        entry: dict[str, Any] = {"epoch": len(state.history) + 1}
        entry["loss"] = _train_epoch(learner, dataset, chosen, state, save, on_batch)
        if not math.isfinite(entry["loss"]):
            raise TrainingError(
                f"{folder}: epoch {entry['epoch']}: expected a finite loss, found {entry['loss']}: the "
                "programs' numbers are too large for the network; delete the folder and train in float32, or "
                "without --faithful, which scales them"
            )
        if validation is not None:
            entry["validation"] = validate(state.average, model_settings, validation, place, peers)
        state.history.append(entry)
        if validation is None or entry["validation"]["score"] > _best_score(state):
            state.best, state.best_epoch = copy_of(state.average), entry["epoch"]
        save()
        if peers.writes:
            write_metrics(folder, state.history, state.timings)
        on_epoch(entry)
    weights = {name: tensor.cpu() for name, tensor in state.best.items()}
    return Trained(weights, state.best_epoch, state.history)


def _train_epoch(
    learner: Learner,
    dataset: MeasuredDataset,
    chosen: NDArray[np.bool_],
    state: TrainState,
    save: Callable[[], None],
    on_batch: BatchCallback,
) -> float:
    """What is left of one pass over the chosen programs; returns the mean loss of the pass's batches."""
    settings, epoch, count = learner.settings, len(state.history), int(chosen.sum())
    seed = (settings.seed, epoch)
    batches = list(epoch_of(dataset, settings.batch_programs, settings.list_programs, seed, chosen))
    left = batches[state.batches :]
    done = (epoch + 1) * count - sum(len(each) for lists in left for each in lists)
    saved = time.monotonic()
    begin = saved - state.seconds
    on_batch(done, settings.epochs * count)
    make = partial(batch_of, dataset, device=learner.device, cut=learner.cuts_padding)
    shares = (learner.peers.share(lists) for lists in left)
    for lists, batch in zip(left, made_ahead(make, shares), strict=True):
        progress = (epoch + state.batches / len(batches)) / settings.epochs
        state.loss = state.loss + learner.step(batch, progress, (epoch, state.batches)).double()
        state.batches += 1
        done += sum(map(len, lists))
        state.seconds = time.monotonic() - begin
        if time.monotonic() - saved >= SAVE_SECONDS:
            save()
            saved = time.monotonic()
        on_batch(done, settings.epochs * count)
    loss = float(state.loss) / len(batches)
    seconds = time.monotonic() - begin
    state.timings.append({"seconds": seconds, "programs_per_second": count / seconds})
    state.batches, state.loss, state.seconds = 0, 0.0, 0.0
    return loss


def _best_score(state: TrainState) -> float:
    if state.best_epoch == 0:
        return -math.inf
    return float(state.history[state.best_epoch - 1]["validation"]["score"])


def _out_of_patience(state: TrainState, settings: TrainSettings) -> bool:
    return 0 < settings.patience <= len(state.history) - state.best_epoch


def _fingerprint(
    dataset: MeasuredDataset,
    validation: MeasuredDataset | None,
    model_settings: TLPSettings,
    settings: TrainSettings,
    start: Start | None,
) -> str:
    """Two runs with the same one give the same numbers."""
    parts: dict[str, Any] = {
        **model_settings.to_dict(),
        **settings.to_dict(),
        "layout": dataset.layout.digest,
        "data": dataset.digest,
        "platforms": [platform.name for platform in dataset.platforms],
        "streamed": dataset.is_streamed,  # the order of a large dataset depends on it
        "tasks": len(dataset.tasks),
        "validation tasks": len(validation.tasks) if validation is not None else 0,
    }
    if start is not None:
        parts["start"] = start.digest
    return json.dumps(parts, sort_keys=True)


__all__ = ["BatchCallback", "EpochCallback", "TrainSettings", "Trained", "train", "validate"]
