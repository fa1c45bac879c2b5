"""The state of a training run, and its file: an interrupted run resumes from it.

training.safetensors holds the tensors "network/<name>", "average/<name>", "best/<name>" and
"optimizer/<parameter>.<name>". Its metadata holds the counters, as text, and the fingerprint of the run.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import ModelFileError
from tlp_tvm.files import write_whole
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.seeding import seeded
from tlp_tvm.training.start import Start
from tlp_tvm.training.train_settings import TrainSettings

STATE = "training.safetensors"


@dataclass(frozen=True)
class Trained:
    """The outcome of a run."""

    weights: dict[str, Tensor]
    """Of the best epoch by validation, or of the last if nothing was held out. On the CPU."""
    best_epoch: int
    history: list[dict[str, Any]]


@dataclass
class TrainState:
    """Everything that the next step depends on."""

    network: TLP
    optimizer: torch.optim.Adam
    average: dict[str, Tensor]
    """Moving average of the weights: what is validated and kept."""
    best: dict[str, Tensor]
    """The average at its best epoch so far."""
    best_epoch: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    """One entry per finished epoch."""
    timings: list[dict[str, float]] = field(default_factory=list)
    """How long each finished epoch took."""
    batches: int = 0
    """Done in the current epoch."""
    loss: float | Tensor = 0.0
    """Sum over those batches; stays on the device until somebody reads it."""
    seconds: float = 0.0
    """Time that they took."""

    @classmethod
    def begin(
        cls, model: TLPSettings, settings: TrainSettings, device: torch.device, start: Start | None = None
    ) -> TrainState:
        """A new run: weights from the seed, or from a start."""
        with seeded(device, settings.seed):
            network = TLP(model).to(device)
        if start is not None:
            start.put_into(network)
        optimizer = torch.optim.Adam(
            network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        average = copy_of(network.state_dict())
        return cls(network, optimizer, average, copy_of(average))

    @property
    def best_score(self) -> float:
        """Of the validation of the best epoch; negative infinity before the first."""
        if not self.best_epoch:
            return -math.inf
        return float(self.history[self.best_epoch - 1]["validation"]["score"])

    def out_of_patience(self, patience: int) -> bool:
        """Whether this many epochs brought no better one; 0 never stops."""
        return 0 < patience <= len(self.history) - self.best_epoch

    def end_epoch(self, batches: int, programs: int, begin: float) -> float:
        """Note how long an epoch took, and reset what counts within one.

        Args:
            batches: of the epoch.
            programs: in them.
            begin: of the epoch, by the monotonic clock.

        Returns:
            The mean loss of the batches.
        """
        loss = float(self.loss) / batches  # waits for the device
        seconds = time.monotonic() - begin
        self.timings.append({"seconds": seconds, "programs_per_second": programs / seconds})
        self.batches, self.loss, self.seconds = 0, 0.0, 0.0
        return loss

    def save(self, folder: Path, fingerprint: str) -> None:
        """Write the state; the previous one stays until this one is whole."""
        parts = {
            "network": self.network.state_dict(),
            "average": self.average,
            "best": self.best,
            "optimizer": _adam_tensors(self.optimizer),
        }
        tensors = {
            f"{part}/{name}": tensor.detach().cpu().contiguous().clone()
            for part, named in parts.items()
            for name, tensor in named.items()
        }
        metadata = {
            "fingerprint": fingerprint,
            "history": json.dumps(self.history),
            "best_epoch": str(self.best_epoch),
            "timings": json.dumps(self.timings),
            "batches": str(self.batches),
            "loss": repr(float(self.loss)),
            "seconds": repr(self.seconds),
        }
        write_whole(folder / STATE, safetensors.torch.save(tensors, metadata))

    def resume(self, folder: Path, fingerprint: str) -> bool:
        """Take over the state of an interrupted run; returns whether there is one.

        Raises:
            ModelFileError: it is damaged, or belongs to a run with other settings or data.
        """
        if not (folder / STATE).is_file():
            return False
        parts, metadata = _read(folder / STATE, fingerprint)
        self.network.load_state_dict(parts["network"])
        _restore_adam(self.optimizer, parts["optimizer"])
        device = next(iter(self.average.values())).device
        self.average = {name: tensor.to(device) for name, tensor in parts["average"].items()}
        self.best, self.best_epoch = parts["best"], int(metadata["best_epoch"])
        self.history, self.timings = json.loads(metadata["history"]), json.loads(metadata["timings"])
        self.batches = int(metadata["batches"])
        self.loss, self.seconds = float(metadata["loss"]), float(metadata["seconds"])
        return True


def copy_of(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same values in memory of their own."""
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


def fingerprint_of(
    dataset: MeasuredDataset,
    validation: MeasuredDataset | None,
    model: TLPSettings,
    settings: TrainSettings,
    start: Start | None,
) -> str:
    """Two runs with the same fingerprint give the same numbers."""
    parts: dict[str, Any] = {
        **model.to_dict(),
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


def _read(path: Path, fingerprint: str) -> tuple[dict[str, dict[str, Tensor]], dict[str, str]]:
    """The tensors of each part, and the metadata."""
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "average": {}, "best": {}, "optimizer": {}}
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            for key in list(file.keys()):
                part, name = key.split("/", 1)
                parts[part][name] = file.get_tensor(key)
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ModelFileError(
            f"{path}: expected the state of a training run, found {error}; delete it to start again"
        ) from error
    if metadata.get("fingerprint") != fingerprint:
        raise ModelFileError(
            f"{path}: expected the state of a run with the same settings and data, found another's: "
            f"{_first_difference(metadata.get('fingerprint', '{}'), fingerprint)}; "
            "repeat that run's settings, choose another folder, or delete the file"
        )
    return parts, metadata


def _adam_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimiser remembers, flat."""
    state = optimizer.state_dict()["state"]
    return {f"{i}.{name}": value for i, entry in state.items() for name, value in entry.items()}


def _restore_adam(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """The inverse of `_adam_tensors`."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        i, name = key.split(".", 1)
        state.setdefault(int(i), {})[name] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _first_difference(found: str, expected: str) -> str:
    theirs, ours = json.loads(found), json.loads(expected)
    for key in sorted(theirs.keys() | ours.keys()):
        if theirs.get(key) != ours.get(key):
            return f"{key} {theirs.get(key)!r}, not {ours.get(key)!r}"
    return "written by another version"
