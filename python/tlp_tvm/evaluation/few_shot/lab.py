"""A cache of trainings, keyed by everything they depend on."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError, ModelFileError
from tlp_tvm.evaluation.few_shot.few_shot_settings import FewShotSettings
from tlp_tvm.evaluation.few_shot.labels import of_platforms
from tlp_tvm.files import one_at_a_time, write_whole
from tlp_tvm.machine.code import training_key
from tlp_tvm.model.scoring import pick_device
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.loop import train
from tlp_tvm.training.start import Start
from tlp_tvm.training.train_settings import TrainSettings

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Fitted:
    """A trained network."""

    settings: TLPSettings
    weights: dict[str, Tensor]
    head: int = 0
    """The head that scores."""
    own: float = 1.0
    """Its share in the score; the rest is the mean of all heads."""

    def score(self, heads: Tensor) -> Tensor:
        """(n, P) scores of the heads -> (n,) the score."""
        return torch.lerp(heads.mean(1), heads[:, self.head], self.own)


class Lab:
    """What recipes train with.

    Attributes:
        data: training tasks with all labels of all platforms; recipes are told which of the target's to read.
        target: the target's column.
        others: all other columns.
    """

    def __init__(self, data: MeasuredDataset, settings: FewShotSettings, tell: Tell) -> None:
        self.data = data
        self.settings = settings
        self.tell = tell
        self.device = pick_device(settings.device)
        names = [platform.name for platform in data.platforms]
        if settings.target not in names or len(names) < 2:
            raise DatasetError(
                f"`few_shot` {settings.target}: expected one of several platforms of the dataset, found "
                f"{', '.join(names)}"
            )
        self.target = names.index(settings.target)
        self.others = [column for column in range(len(data.platforms)) if column != self.target]

    def training(self, seed: int, **changes: Any) -> TrainSettings:
        """How to train, with a seed."""
        return replace(self.settings.training, seed=seed, **changes)

    def fit(
        self,
        what: str,
        data: MeasuredDataset,
        training: TrainSettings,
        start: Start | None = None,
        model: TLPSettings | None = None,
    ) -> Fitted:
        """Train on all tasks of `data` to the last epoch, or reuse the training of the same inputs.

        Args:
            what: what is trained, in words.
            data: its labels, and a head for each of its platforms.
            training: how.
            start: the weights to begin with.
            model: their settings; the run's own when None.
        """
        model = model or TLPSettings.of_layout(data.layout, len(data.platforms), **self.settings.model)

        def make(folder: Path) -> dict[str, Tensor]:
            def on_epoch(entry: dict[str, Any]) -> None:
                self.tell(f"{what}: epoch {entry['epoch']} of {training.epochs}")

            trained = train(
                data,
                None,
                model,
                training,
                folder,
                device=self.settings.device,
                start=start,
                on_epoch=on_epoch,
            )
            return trained.weights

        parts = [start.digest if start else None, _digest(data.latencies)]
        return Fitted(model, self._kept("fit", data, model, training, parts, make))

    def source(self, seed: int) -> Fitted:
        """A model of the other platforms, with all their labels; scores by the mean of its heads."""
        data = of_platforms(self.data, self.others)
        return replace(self.fit("the other platforms", data, self.training(seed)), own=0.0)

    def network(self, fitted: Fitted) -> TLP:
        """The network, ready to score."""
        weights = {name: tensor.to(self.device) for name, tensor in fitted.weights.items()}
        return TLP.with_weights(fitted.settings, weights)

    def _kept(
        self,
        kind: str,
        data: MeasuredDataset,
        model: TLPSettings,
        training: TrainSettings,
        parts: list[Any],
        make: Callable[[Path], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        known = [
            training_key(),
            kind,
            data.digest,
            data.layout.digest,
            model.to_dict(),
            training.to_dict(),
            *parts,
        ]
        names = [[platform.name for platform in data.platforms], [task.workload_key for task in data.tasks]]
        programs = [_digest(data.starts), _digest(data.task_index)]
        digest = hashlib.sha256(json.dumps([known, names, programs], sort_keys=True).encode()).hexdigest()[
            :32
        ]
        self.settings.cache.mkdir(parents=True, exist_ok=True)
        # Runs on other platforms need some of the same trainings.
        with one_at_a_time(self.settings.cache / f"{digest}.lock"):
            return self._read_or_made(digest, make)

    def _read_or_made(self, digest: str, make: Callable[[Path], dict[str, Tensor]]) -> dict[str, Tensor]:
        file = self.settings.cache / f"{digest}.safetensors"
        if file.is_file():
            try:
                return safetensors.torch.load(file.read_bytes())
            except SafetensorError as error:
                raise ModelFileError(
                    f"{file}: expected the weights of a training, found {error}; delete it to train again"
                ) from error
        folder = self.settings.cache / digest
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: tensor.cpu().contiguous() for name, tensor in make(folder).items()}
        write_whole(file, safetensors.torch.save(weights))
        shutil.rmtree(folder)
        return weights


def _digest(values: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
