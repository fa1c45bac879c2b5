"""TLP and MTL-TLP trained for an evaluation by the package's own loop: our recipe and the published one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.reading.holding_out import fold_of
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.evaluation.baselines.baseline_settings import PUBLISHED_EPOCHS, BaselineSettings
from tlp_tvm.evaluation.baselines.training_tables import FOLDS
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import AT_ONCE, Programs, Tell, adapted
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.machine.code import training_key
from tlp_tvm.model.config import ModelConfig
from tlp_tvm.model.losses import Loss
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.loop import train
from tlp_tvm.training.recipe import MODELS
from tlp_tvm.training.train_settings import TrainSettings


class TrainedTLP:
    """One network per platform (TLP), or one with a head per platform (MTL-TLP).

    The published one is faithful but for the loop: LambdaRank compares programs of one task, and the epoch
    is chosen on training tasks held out. Its `update` does nothing, so that in a search its scores stay as
    they are; ours learns as `tlp-tvm tune` lets it.
    """

    is_fixed = False

    def __init__(self, settings: BaselineSettings, name: str) -> None:
        """One of `BASELINES`: its name says whether it is joint, published, and of one member."""
        self.name = name
        self.joint = "mtl-tlp" in name
        self.published = name.startswith("published-")
        self.one = name.endswith("-one")
        self.notes = ["as published, it does not learn in a search"] if self.published else []
        self.settings = settings
        self._corpus: Corpus
        self._layout: FeatureLayout
        self._scores: NDArray[np.float32] = np.empty((0, 0), np.float32)

    def fit(self, corpus: Corpus, seed: int, tell: Tell) -> dict[int, str]:
        """Train, or resume an interrupted training, and score all test programs."""
        on_gpu = corpus.whole.platforms[0].target.split()[0] != "llvm"
        published = "paper-gpu" if on_gpu else "paper-cpu"
        self._layout = FeatureLayout.preset(published if self.published else corpus.whole.layout.framework)
        self._corpus = corpus
        measured = corpus.in_layout(self._layout)
        columns = list(range(len(measured.platforms)))
        self._scores = np.full((len(measured), len(columns)), np.nan, np.float32)
        for heads in [columns] if self.joint else [[column] for column in columns]:
            part = replace(
                measured,
                platforms=tuple(measured.platforms[column] for column in heads),
                latencies=measured.latencies[:, heads],
            )
            model = self._trained(part.of_tasks(corpus.training_tasks), seed, tell)
            for begin in range(0, len(corpus.judged_programs), AT_ONCE):
                programs = corpus.judged_programs[begin : begin + AT_ONCE]
                self._scores[programs[:, None], heads] = model.score_all(measured.features(programs))
        return {}

    def scores(self, programs: Programs, column: int) -> NDArray[np.float64]:
        """What the platform's head says."""
        return np.asarray(self._scores[programs, column], np.float64)

    def scores_after(self, seen: Programs, rest: Programs, column: int) -> NDArray[np.float64]:
        """Corrected by what was measured; the published one's stay the same."""
        if self.published:
            return self.scores(rest, column)
        return adapted(self._corpus, self._layout, self._scores[:, column], seen, rest, column)

    def _trained(self, data: MeasuredDataset, seed: int, tell: Tell) -> ScoringModel:
        names = ", ".join(platform.name for platform in data.platforms)
        fitted, held_out = fold_of(data, 0, FOLDS, seed)
        options = MODELS["paper" if self.published else "recipe"]
        if self.one:
            options = {**options, "members": 1}
        model = TLPSettings.of_layout(data.layout, len(data.platforms), **options)
        if self.published:
            training = TrainSettings(loss=Loss.LAMBDARANK, epochs=PUBLISHED_EPOCHS, seed=seed)
        else:
            training = TrainSettings(seed=seed)
        training = replace(training, epochs=self.settings.epochs or training.epochs)
        parts = [
            training_key(),
            data.digest,
            data.layout.digest,
            [platform.name for platform in data.platforms],
            [task.workload_key for task in data.tasks],
            model.to_dict(),
            training.to_dict(),
        ]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        folder = self.settings.cache / self.name / digest[:32]
        folder.mkdir(parents=True, exist_ok=True)
        trained = train(
            fitted,
            held_out,
            model,
            training,
            folder,
            device=self.settings.device,
            on_epoch=lambda entry: tell(
                f"{self.name}, seed {seed}: {names}: epoch {entry['epoch']} of {training.epochs}"
            ),
        )
        config = ModelConfig(data.layout, model, data.platforms, {})
        return ScoringModel(self.name, config, TLP.with_weights(model, trained.weights)).to(
            self.settings.device
        )
