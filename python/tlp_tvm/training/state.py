"""The state of a training run, as one safetensors file: a killed run goes on from it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from tlp_tvm.errors import ModelFileError
from tlp_tvm.files import write_whole

STATE = "training.safetensors"


@dataclass
class TrainState:
    """Everything that the next step depends on."""

    network: dict[str, Tensor]
    average: dict[str, Tensor]
    """Moving average of the weights: what is validated and kept."""
    best: dict[str, Tensor]
    """The average at its best epoch so far."""
    optimizer: dict[str, Tensor] = field(default_factory=dict)
    """ "<parameter>.<name>" -> what Adam remembers."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """One entry a finished epoch."""
    best_epoch: int = 0
    timings: list[dict[str, float]] = field(default_factory=list)
    """What each finished epoch took."""
    batches: int = 0
    """Done in the epoch under way."""
    loss: float | Tensor = 0.0
    """Their sum; stays on the device until somebody reads it."""
    seconds: float = 0.0
    """That they took."""

    PARTS = ("network", "average", "best", "optimizer")

    def save(self, folder: Path, fingerprint: str) -> None:
        """Write the state; the one before stays until this one is whole."""
        tensors = {
            f"{part}/{name}": tensor.detach().cpu().contiguous().clone()
            for part in self.PARTS
            for name, tensor in getattr(self, part).items()
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

    @classmethod
    def load(cls, folder: Path, fingerprint: str) -> TrainState | None:
        """Read the state of a run that was cut short; None where there is none.

        Raises:
            ModelFileError: it is damaged, or belongs to a run with other settings or data.
        """
        path = folder / STATE
        if not path.is_file():
            return None
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in cls.PARTS}
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                for key in list(file.keys()):
                    part, name = key.split("/", 1)
                    parts[part][name] = file.get_tensor(key)
        except (SafetensorError, OSError) as error:
            raise ModelFileError(
                f"{path}: expected the state of a training run, found {error}; delete it to start anew"
            ) from error
        if metadata.get("fingerprint") != fingerprint:
            raise ModelFileError(
                f"{path}: expected the state of a run with the same settings and data, found another's: "
                f"{_first_difference(metadata.get('fingerprint', '{}'), fingerprint)}; "
                "repeat that run's settings, choose another folder, or delete the file"
            )
        return cls(
            **parts,
            history=json.loads(metadata["history"]),
            best_epoch=int(metadata["best_epoch"]),
            timings=json.loads(metadata["timings"]),
            batches=int(metadata["batches"]),
            loss=float(metadata["loss"]),
            seconds=float(metadata["seconds"]),
        )


def adam_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimiser remembers, flat."""
    state = optimizer.state_dict()["state"]
    return {f"{i}.{name}": value for i, entry in state.items() for name, value in entry.items()}


def restore_adam(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """The inverse of `adam_tensors`."""
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
