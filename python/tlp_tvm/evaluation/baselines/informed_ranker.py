"""A trained model with its trees: what it knows of programs that TVM has lowered."""

from __future__ import annotations

import numpy as np

from tlp_tvm.adapting.informed import both
from tlp_tvm.evaluation.baselines.baseline_settings import BaselineSettings
from tlp_tvm.evaluation.baselines.pooled_trees import tiles_of
from tlp_tvm.evaluation.baselines.store_features import store_features
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import ModelRanker, Tell
from tlp_tvm.model.scoring import ScoringModel


class InformedRanker(ModelRanker):
    """Ranks by the network and the trees together; measurements correct both as they do the network."""

    def __init__(self, model: ScoringModel, name: str, settings: BaselineSettings) -> None:
        """Wrap a model that has trees.

        Args:
            model: what scores.
            name: what to call it.
            settings: the cache of features, and the files of networks.
        """
        super().__init__(model, name)
        assert model.trees is not None
        self._trees, self._settings = model.trees, settings

    def fit(self, corpus: Corpus, seed: int, tell: Tell) -> dict[int, str]:
        """Score all judged programs once; features are computed if need be.

        Raises:
            ModelFileError: the model has no head for a platform of the corpus.
        """
        unscored = super().fit(corpus, seed, tell)
        settings, judged = self._settings, corpus.judged_programs
        features = store_features(corpus, settings.cache, tell, settings.network_files)
        self.notes = features.notes(corpus)
        rows, _ = features.of(judged)
        tiles = tiles_of(corpus, judged)
        for column, platform in enumerate(corpus.whole.platforms):
            if platform.name in self._trees.platforms:
                speeds = self._trees.speeds(rows, features.counts[judged], tiles, platform.name)
                known = both(self._scores[judged, column], speeds)
                lowest = known[np.isfinite(known)].min(initial=0.0)
                self._scores[judged, column] = np.where(np.isfinite(known), known, lowest - 1)
        return unscored | features.missing
