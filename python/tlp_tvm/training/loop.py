"""The training loop: epochs of batches (`batches.py`), a validation after each, and the best epoch.

Beside it: the state that a run resumes from (`state.py`), the processes that train together (`peers.py`) and
the files with an epoch's numbers (`epoch_log.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tlp_tvm.dataset.ranking import ranked_everywhere
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.metrics.correlation import spearman
from tlp_tvm.metrics.topk import mean_top_k
from tlp_tvm.model.losses import FUNCTIONS
from tlp_tvm.model.scoring import pick_device
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.ahead import made_ahead
from tlp_tvm.training.batches import Batch, batch_of, epoch_of, parts_of
from tlp_tvm.training.epoch_log import BatchCallback, EpochCallback, check_finite, write_metrics
from tlp_tvm.training.peers import ALONE, Peers
from tlp_tvm.training.seeding import mixed, seeded
from tlp_tvm.training.start import Start
from tlp_tvm.training.state import Trained, TrainState, copy_of, fingerprint_of
from tlp_tvm.training.train_settings import TrainSettings

SAVE_SECONDS = 60.0
"""Between two saves of the state within an epoch: what an interruption costs at most."""

AT_ONCE = 2048
"""Programs of a validation whose embeddings are made together."""


def train(
    dataset: MeasuredDataset,
    validation: MeasuredDataset | None,
    model: TLPSettings,
    settings: TrainSettings,
    folder: Path,
    *,
    device: str = "auto",
    peers: Peers = ALONE,
    start: Start | None = None,
    on_epoch: EpochCallback = lambda entry: None,
    on_batch: BatchCallback = lambda done, total: None,
) -> Trained:
    """Train a model, or resume an interrupted run in the same folder to identical numbers.

    Args:
        dataset: tasks to learn from.
        validation: held-out tasks that choose the epoch; None keeps the last epoch.
        model: the network, with one head per platform of the dataset.
        settings: how it is trained.
        folder: gets metrics.jsonl, metrics.csv and the state to resume from.
        device: "auto", or torch's name.
        peers: the processes that train together; each calls this and gets the same result.
        start: initial weights; random ones when None.
        on_epoch: called with the entry of every finished epoch, those before an interruption first.
        on_batch: called before the first batch and after each.

    Raises:
        ModelFileError: the folder holds the state of another run.
        TrainingError: the loss of an epoch is not finite.
    """
    learner = Learner(model, settings, pick_device(device), peers, start)
    state, fingerprint = learner.state, fingerprint_of(dataset, validation, model, settings, start)
    state.resume(folder, fingerprint)
    peers.wait()  # nobody writes before all have read

    def save() -> None:
        if peers.writes:
            state.save(folder, fingerprint)
            write_metrics(folder, state.history, state.timings)

    if state.history and peers.writes:
        write_metrics(folder, state.history, state.timings)  # an interruption may have lost the last line
    for past in state.history:
        on_epoch(past)
    while len(state.history) < settings.epochs and not state.out_of_patience(settings.patience):
        entry: dict[str, Any] = {"epoch": len(state.history) + 1}
        entry["loss"] = learner.epoch(dataset, save, on_batch)
        check_finite(entry, folder)
        if validation is not None:
            entry["validation"] = validate(state.average, model, validation, learner.device, peers)
        state.history.append(entry)
        if validation is None or entry["validation"]["score"] > state.best_score:
            state.best, state.best_epoch = copy_of(state.average), entry["epoch"]
        save()
        on_epoch(entry)
    weights = {name: tensor.cpu() for name, tensor in state.best.items()}
    return Trained(weights, state.best_epoch, state.history)


class Learner:
    """A network in training."""

    def __init__(
        self,
        model: TLPSettings,
        settings: TrainSettings,
        device: torch.device,
        peers: Peers = ALONE,
        start: Start | None = None,
    ) -> None:
        """Begin a run; `TrainState.resume` continues an interrupted one."""
        self.model, self.settings, self.device, self.peers = model, settings, device, peers
        self.state = TrainState.begin(model, settings, device, start)

    def epoch(self, dataset: MeasuredDataset, save: Callable[[], None], on_batch: BatchCallback) -> float:
        """Train on what is left of an epoch; returns the mean loss of all its batches."""
        state, epochs, epoch = self.state, self.settings.epochs, len(self.state.history)
        batches = list(epoch_of(dataset, self.settings, epoch))
        sizes = [sum(map(len, lists)) for lists in batches]
        count, done = sum(sizes), epoch * sum(sizes) + sum(sizes[: state.batches])
        saved = time.monotonic()
        begin = saved - state.seconds
        on_batch(done, epochs * count)
        make = partial(batch_of, dataset, device=self.device, cut=not self.model.faithful)
        shares = (self.peers.share(lists) for lists in batches[state.batches :])
        for size, batch in zip(sizes[state.batches :], made_ahead(make, shares), strict=True):
            progress = (epoch + state.batches / len(batches)) / epochs
            state.loss = state.loss + self.step(batch, progress, (epoch, state.batches)).double()
            state.batches += 1
            done += size
            state.seconds = time.monotonic() - begin
            if time.monotonic() - saved >= SAVE_SECONDS:
                save()
                saved = time.monotonic()
            on_batch(done, epochs * count)
        return state.end_epoch(len(batches), count, begin)

    def step(self, batch: Batch, progress: float, at: tuple[int, int]) -> Tensor:
        """Learn from this process's share of a batch; returns the whole batch's loss, mean over members.

        `progress`, in [0, 1), sets the learning rate; `at`, epoch and batch, the dropout.
        """
        network, optimizer, settings = self.state.network.train(), self.state.optimizer, self.settings
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))
        with seeded(self.device, mixed(settings.seed, *at, self.peers.rank)):
            scores = self.scores(batch)  # (members, n, P)
        loss_of = FUNCTIONS[settings.loss]
        losses = [loss_of(each, batch.labels, batch.groups, self.peers.over_all) for each in scores]
        loss = torch.stack(losses).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.peers.sum_gradients(network)
        for member in network.members:
            nn.utils.clip_grad_norm_(member.parameters(), settings.gradient_clip)
        optimizer.step()
        with torch.no_grad():
            for name, tensor in network.state_dict().items():
                self.state.average[name].lerp_(tensor, 1.0 - settings.average)
        return self.peers.over_all(loss.detach()) / len(losses)

    def scores(self, batch: Batch) -> Tensor:
        """(members, n, P) float32; n is 0 if there were fewer lists than processes."""
        if not batch.parts:
            shape = (self.model.members, 0, self.model.heads)
            return torch.zeros(shape, device=self.device, requires_grad=True)
        precision = self.settings.precision.on(self.device)
        with torch.autocast(self.device.type, precision, enabled=precision != torch.float32):
            scores = [self.state.network.of_members(x) for x in batch.parts]
        return torch.cat(scores, dim=1).float()


def validate(
    weights: dict[str, Tensor],
    model: TLPSettings,
    dataset: MeasuredDataset,
    device: torch.device,
    peers: Peers = ALONE,
) -> dict[str, float]:
    """Rank held-out tasks: means over tasks and platforms, without tasks that never ran on a platform.

    Each process scores its share of the programs, and all of them get the result.
    """
    network = TLP.with_weights(model, weights).to(device)
    scores = torch.zeros((len(dataset), model.heads), device=device)
    begins = range(peers.rank * AT_ONCE, len(dataset), peers.count * AT_ONCE)
    some = (np.arange(begin, min(begin + AT_ONCE, len(dataset))) for begin in begins)
    make = partial(parts_of, dataset, device=device, cut=not model.faithful)
    with torch.inference_mode():
        for begin, (order, parts) in zip(begins, made_ahead(make, some), strict=True):
            scores[begin + torch.from_numpy(order)] = torch.cat([network(x) for x in parts])
        found = peers.over_all(scores).cpu().numpy()
    tasks = ranked_everywhere(dataset, found)
    top1, top5 = mean_top_k(tasks, 1), mean_top_k(tasks, 5)
    correlation = float(np.mean([spearman(task.scores, -task.latencies) for task in tasks]))
    return {"top1": top1, "top5": top5, "spearman": correlation, "score": (top1 + top5) / 2}
