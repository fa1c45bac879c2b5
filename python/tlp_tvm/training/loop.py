"""The training loop: Adam over batches of whole tasks, an average of the weights, the best epoch."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tlp_tvm.dataset.records import MeasuredDataset
from tlp_tvm.evaluation.ranking import spearman
from tlp_tvm.evaluation.report import ranked_tasks
from tlp_tvm.evaluation.topk import mean_top_k
from tlp_tvm.files import write_whole
from tlp_tvm.model.losses import FUNCTIONS, Loss
from tlp_tvm.model.scoring import BATCH, pick_device
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.batches import epoch_of, tensors_of
from tlp_tvm.training.start import Start
from tlp_tvm.training.state import TrainState, adam_tensors, restore_adam

METRICS = "metrics.jsonl"


@dataclass(frozen=True)
class TrainSettings:
    """How a model is trained; its shape is in `TLPSettings`."""

    loss: Loss = Loss.PAIRWISE
    epochs: int = 40
    learning_rate: float = 7e-4
    """At the start; it falls to zero along a cosine."""
    weight_decay: float = 1e-6
    gradient_clip: float = 0.5
    """Largest norm of the gradient."""
    batch_programs: int = 256
    """About how many programs a batch; batches are made of whole lists."""
    list_programs: int = 256
    """Larger tasks are cut into random lists of at most this."""
    average: float = 0.95
    """Share of the past in the moving average of the weights, a step; 0 keeps the last weights only."""
    patience: int = 0
    """Epochs without a better validation before training stops; 0 never stops it."""
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return {**asdict(self), "loss": self.loss.value}


@dataclass(frozen=True)
class Trained:
    """The outcome of a run."""

    weights: dict[str, Tensor]
    """Of the best epoch by validation; of the last where nothing was held out."""
    best_epoch: int
    history: list[dict[str, Any]]


EpochCallback = Callable[[dict[str, Any]], None]


def train(
    dataset: MeasuredDataset,
    validation: MeasuredDataset | None,
    model_settings: TLPSettings,
    settings: TrainSettings,
    folder: Path,
    *,
    device: str = "auto",
    start: Start | None = None,
    on_epoch: EpochCallback = lambda entry: None,
) -> Trained:
    """Train a model, or go on with a run that was cut short in the same folder: to the same numbers.

    Args:
        dataset: tasks to learn from.
        validation: tasks held out to choose the epoch by; None keeps the last epoch.
        model_settings: the network; one head a platform of the dataset.
        settings: how it is trained.
        folder: gets metrics.jsonl, a line an epoch, and the state that a killed run goes on from.
        device: "auto", or torch's name.
        start: weights to begin with; random ones when None.
        on_epoch: called with every finished epoch's entry, those of an earlier run first.

    Raises:
        ModelFileError: the folder holds the state of another run.
    """
    place = pick_device(device)
    fingerprint = _fingerprint(dataset, validation, model_settings, settings, start)
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = TLP(model_settings).to(place)
    if start is not None:
        start.put_into(network)
    optimizer = torch.optim.Adam(
        network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    state = TrainState.load(folder, fingerprint)
    if state is None:
        state = TrainState(network.state_dict(), _copy(network.state_dict()), _copy(network.state_dict()))
    else:
        network.load_state_dict(state.network)
        restore_adam(optimizer, state.optimizer)
        state.network = network.state_dict()
        state.average = {name: tensor.to(place) for name, tensor in state.average.items()}
    for past in state.history:
        on_epoch(past)
    while len(state.history) < settings.epochs and not _out_of_patience(state, settings):
        epoch = len(state.history)
        entry: dict[str, Any] = {"epoch": epoch + 1}
        entry["loss"] = _train_epoch(network, optimizer, state.average, dataset, settings, epoch, place)
        if validation is not None:
            entry["validation"] = validate(state.average, model_settings, validation, place)
        state.history.append(entry)
        if validation is None or entry["validation"]["score"] > _best_score(state):
            state.best, state.best_epoch = _copy(state.average), epoch + 1
        state.optimizer = adam_tensors(optimizer)
        state.save(folder, fingerprint)
        write_whole(folder / METRICS, "".join(json.dumps(line) + "\n" for line in state.history))
        on_epoch(entry)
    return Trained(state.best, state.best_epoch, state.history)


def _train_epoch(
    network: TLP,
    optimizer: torch.optim.Optimizer,
    average: dict[str, Tensor],
    dataset: MeasuredDataset,
    settings: TrainSettings,
    epoch: int,
    device: torch.device,
) -> float:
    """One pass over the programs; returns the mean loss of its batches."""
    loss_of = FUNCTIONS[settings.loss]
    batches = list(epoch_of(dataset, settings.batch_programs, settings.list_programs, (settings.seed, epoch)))
    losses = []
    network.train()
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed * 1_000_003 + epoch)  # dropout
        for i, programs in enumerate(batches):
            progress = (epoch + i / len(batches)) / settings.epochs
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))
            x, labels, tasks = tensors_of(dataset, programs, device)
            scores = network.of_members(x)
            loss = torch.stack([loss_of(each, labels, tasks) for each in scores]).sum()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            for member in network.members:
                nn.utils.clip_grad_norm_(member.parameters(), settings.gradient_clip)
            optimizer.step()
            with torch.no_grad():
                for name, tensor in network.state_dict().items():
                    average[name].lerp_(tensor, 1.0 - settings.average)
            losses.append(loss.item() / len(scores))
    return float(np.mean(losses))


def validate(
    weights: dict[str, Tensor], settings: TLPSettings, dataset: MeasuredDataset, device: torch.device
) -> dict[str, float]:
    """Means over tasks and platforms; tasks without a label on a platform are left out there."""
    network = TLP.with_weights(settings, weights)
    scores = np.empty((len(dataset), settings.heads), np.float32)
    with torch.inference_mode():
        for begin in range(0, len(dataset), BATCH):
            part = np.arange(begin, min(begin + BATCH, len(dataset)))
            scores[part] = network(torch.from_numpy(dataset.features(part)).to(device)).cpu().numpy()
    tasks = [
        task
        for column in range(settings.heads)
        for task in ranked_tasks(dataset, scores[:, column], column)
        if task is not None
    ]
    top1, top5 = mean_top_k(tasks, 1), mean_top_k(tasks, 5)
    correlation = float(np.mean([spearman(task.scores, -task.latencies) for task in tasks]))
    return {"top1": top1, "top5": top5, "spearman": correlation, "score": (top1 + top5) / 2}


def _best_score(state: TrainState) -> float:
    if state.best_epoch == 0:
        return -math.inf
    return float(state.history[state.best_epoch - 1]["validation"]["score"])


def _out_of_patience(state: TrainState, settings: TrainSettings) -> bool:
    return 0 < settings.patience <= len(state.history) - state.best_epoch


def _copy(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


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
        "tasks": len(dataset.tasks),
        "validation tasks": len(validation.tasks) if validation is not None else 0,
    }
    if start is not None:
        parts["start"] = start.digest
    return json.dumps(parts, sort_keys=True)
