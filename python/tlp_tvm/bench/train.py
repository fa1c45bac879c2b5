"""How many records per second does training process, and how long would an epoch of TenSet take?

Set-up: programs of a dataset in the batches of an epoch, as `tlp-tvm train` makes them. A built dataset is
streamed from its shards; anything else is embedded beforehand. A record is a program with a latency on one
platform: a network with a head per platform learns from several at once.
In turns, in the same run: complete training, with batches made in a thread; making the batches alone (reading
the shards, embedding); the network's steps alone, on batches made before.
Checked before timing: the loss of every batch is finite, and a streamed batch has the embeddings that its
records have on their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from tlp_tvm.bench.timing import costs_of, peak_memory
from tlp_tvm.dataset.reading.holding_out import TRAIN_SPLIT
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.scoring import pick_device
from tlp_tvm.model.tlp import TLPSettings
from tlp_tvm.records.source import is_built
from tlp_tvm.training.ahead import made_ahead
from tlp_tvm.training.batches import Batch, Lists, batch_of, epoch_of
from tlp_tvm.training.loop import Learner
from tlp_tvm.training.recipe import MODELS
from tlp_tvm.training.train_settings import TrainSettings

TENSET = {"8.6M": 8_600_000, "52M": 52_000_000}
"""Records of one platform of TenSet, and of all six."""


@dataclass(frozen=True)
class TrainResult:
    """Rates in records per second, best of the rounds."""

    dataset: str
    model: str
    parameters: int
    layout: str
    platforms: int
    device: str
    precision: str
    streamed: bool
    programs: int
    """Per round."""
    batch_programs: int
    records_a_program: float
    training: float
    """Embedding included."""
    batches: float
    """Reading and embedding alone."""
    network: float
    """Steps of the network alone."""
    peak_mib: int
    """Memory of the process, including the batches held for timing the network alone."""

    @property
    def epochs(self) -> dict[str, float]:
        """Seconds of an epoch of TenSet, extrapolated."""
        return {name: records / self.training for name, records in TENSET.items()}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "epoch_seconds": self.epochs}


def bench_train(
    dataset: str | os.PathLike[str],
    *,
    model: str = "recipe",
    layout: FeatureLayout | None = None,
    platforms: Sequence[str] | None = None,
    programs: int = 8192,
    settings: TrainSettings | None = None,
    device: str = "auto",
    rounds: int = 3,
    progress: Callable[[str], None] = lambda _: None,
) -> TrainResult:
    """Measure one model on one dataset.

    Args:
        dataset: what `tlp-tvm train` takes.
        model: "recipe" (what `train` makes), "paper", or what `tlp_tvm.load_model` takes, with new weights.
        layout: of the embeddings; a loaded model's own, or else "ansor", when None.
        platforms: one head each; all of the dataset when None.
        programs: approximate number per round; at most those of the training split.
        settings: the batches, loss and precision.
        device: "auto", or torch's name.
        rounds: repeats; the best counts.
        progress: receives a line before each phase.
    """
    settings = settings or TrainSettings()
    loaded = None if model in MODELS else load_model(model).config
    layout = layout or (loaded.layout if loaded else FeatureLayout.preset("ansor"))
    progress(f"{dataset}: reading")
    data = load_measured(dataset, layout, platforms=platforms, stream=is_built(dataset)).of_split(TRAIN_SPLIT)
    heads = len(data.platforms)
    shape = TLPSettings.of_layout(layout, heads, **MODELS.get(model, {}))
    if loaded is not None:
        fixed = {
            name: getattr(shape, name) for name in ("length", "width", "one_hot", "raw_numbers", "heads")
        }
        shape = replace(loaded.settings, **fixed)
    place = pick_device(device)
    learner = Learner(shape, settings, place)
    lists = _batches(data, settings, programs)
    count = sum(len(each) for batch in lists for each in batch)
    make = partial(batch_of, data, device=place, cut=not shape.faithful)

    progress(f"{model}: checking")
    _check(data, lists[0])
    ready = [make(batch) for batch in lists]
    train = partial(_train, learner, finish=partial(_finish, place))
    if not all(torch.isfinite(loss) for loss in train(ready)):
        raise AssertionError("expected the loss of every batch to be finite")
    progress(f"{model}: timing, {rounds} rounds of {count:,} programs")
    costs = costs_of(
        {
            "training": lambda: train(made_ahead(make, lists)),
            "batches": lambda: _make(make, lists, partial(_finish, place)),
            "network": lambda: train(ready),
        },
        rounds=rounds,
    )
    measured = float((~np.isnan(data.latencies)).sum(1).mean())
    return TrainResult(
        dataset=str(dataset),
        model=model,
        parameters=sum(parameter.numel() for parameter in learner.state.network.parameters()),
        layout=layout.name,
        platforms=heads,
        device=str(place),
        precision=str(settings.precision.on(place)).removeprefix("torch."),
        streamed=data.is_streamed,
        programs=count,
        batch_programs=settings.batch_programs,
        records_a_program=measured,
        peak_mib=peak_memory() // 1024,
        **{name: measured * count / cost.seconds for name, cost in costs.items()},
    )


def _batches(data: MeasuredDataset, settings: TrainSettings, programs: int) -> list[Lists]:
    """The first batches of an epoch."""
    batches = list(epoch_of(data, settings, 0))
    sizes = accumulate(sum(map(len, batch)) for batch in batches)
    return batches[: 1 + sum(size < programs for size in sizes)]


def _train(learner: Learner, batches: Any, finish: Callable[[], None]) -> list[torch.Tensor]:
    losses = [learner.step(batch, 0.5, (0, i)) for i, batch in enumerate(batches)]
    finish()
    return losses


def _make(make: Callable[[Lists], Batch], batches: list[Lists], finish: Callable[[], None]) -> None:
    for batch in batches:
        make(batch)
    finish()


def _finish(device: torch.device) -> None:
    """Wait for pending work of a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _check(data: MeasuredDataset, lists: Lists) -> None:
    """Check that the programs of a batch have the embeddings that each has on its own."""
    programs = np.concatenate(lists)
    x = data.features(programs)
    for i in range(0, len(programs), max(len(programs) // 16, 1)):
        if not np.array_equal(data.features(programs[i : i + 1])[0], x[i]):
            raise AssertionError("expected a program's embedding not to depend on its batch")
