"""XGBoost on per-store features: a program's score is the sum over its stores, as in TVM's own XGBModel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.evaluation.baselines.baseline_settings import BaselineSettings
from tlp_tvm.evaluation.baselines.boosting import ROUNDS_SEEN, common_parameters, load_xgboost
from tlp_tvm.evaluation.baselines.store_features import StoreFeatures, store_features
from tlp_tvm.evaluation.baselines.training_tables import labelled
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Programs, Tell, labels_of

PARAMETERS: dict[str, Any] = {
    "max_depth": 6,
    "gamma": 0.001,
    "min_child_weight": 0,
    "eta": 0.1,
    "base_score": 0.0,
    "subsample": 0.8,
    "tree_method": "hist",
    "max_bin": 64,
    "disable_default_eval_metric": 1,
}
"""TVM's, but for shallower trees, a lower rate and parts of the rows: TVM's fit one search."""


class XGBoostFeatures:
    """One model per platform. In a search it boosts on with the labels of the task."""

    name = "xgboost-features"
    is_fixed = False

    def __init__(self, settings: BaselineSettings) -> None:
        self.settings = settings
        self.notes: list[str] = []
        self._corpus: Corpus | None = None
        self._features: StoreFeatures | None = None
        self._seed = 0
        self._models: list[Any] = []

    def fit(self, corpus: Corpus, seed: int, tell: Tell) -> dict[int, str]:
        """Compute features if need be, and fit all training tasks that have some, for each platform."""
        self._features = store_features(corpus, self.settings.cache, tell, self.settings.network_files)
        self._corpus, self._seed, self._models = corpus, seed, []
        self.notes, unscored = self._features.notes(corpus), self._features.unscored(corpus)
        tasks = [task for task in corpus.training_tasks if task not in self._features.missing]
        if not tasks:
            return unscored
        for column, platform in enumerate(corpus.whole.platforms):
            tell(f"{self.name}, seed {seed}: {platform.name}")
            programs = labelled(corpus, tasks, column, self.settings.most_programs, seed)
            labels = corpus.whole.labels[programs, column]
            self._models.append(self._boosted(programs, labels, self.settings.rounds))
        return unscored

    def scores(self, programs: Programs, column: int) -> NDArray[np.float64]:
        """Sums over the stores of each program."""
        return self._sums(self._models[column], programs)

    def scores_after(self, seen: Programs, rest: Programs, column: int) -> NDArray[np.float64]:
        """The same after a few more trees for the labels of the task."""
        assert self._corpus is not None
        labels = labels_of(self._corpus.whole.latencies[seen, column])
        return self._sums(self._boosted(seen, labels, ROUNDS_SEEN, self._models[column]), rest)

    def _boosted(self, programs: Programs, labels: NDArray[Any], rounds: int, start: Any = None) -> Any:
        assert self._features is not None
        xgboost = load_xgboost()
        rows, owner = self._features.of(programs)
        parameters = common_parameters(self._seed, len(rows)) | PARAMETERS
        data = xgboost.DMatrix(rows, nthread=1)
        return xgboost.train(parameters, data, rounds, obj=summed_error(owner, labels), xgb_model=start)

    def _sums(self, model: Any, programs: Programs) -> NDArray[np.float64]:
        assert self._features is not None
        rows, owner = self._features.of(programs)
        stores = model.predict(load_xgboost().DMatrix(rows, nthread=1), output_margin=True)
        sums = np.bincount(owner, stores, minlength=len(programs)).astype(np.float64)
        sums[self._features.counts[programs] == 0] = -np.inf  # not lowered: the last that anyone would run
        return sums


def summed_error(
    owner: NDArray[np.int64], labels: NDArray[Any]
) -> Callable[[NDArray[Any], Any], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Squared error of the sum over a program's stores, weighted by the label, as in TVM."""

    def gradient(stores: NDArray[Any], _: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sums = np.bincount(owner, stores, minlength=len(labels))
        weights = np.maximum(labels, 1e-6).astype(np.float64)
        return (weights * (sums - labels))[owner], weights[owner]

    return gradient
