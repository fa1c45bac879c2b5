"""XGBoost on per-store features: a program's score is the sum over its stores, as in TVM's own XGBModel.

Three sets of parameters: ours, TVM's, and those of TenSet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.evaluation.baselines.baseline_settings import BaselineSettings
from tlp_tvm.evaluation.baselines.boosting import ROUNDS_SEEN, common_parameters, load_xgboost
from tlp_tvm.evaluation.baselines.operator_kinds import kinds_of_tasks, marked
from tlp_tvm.evaluation.baselines.store_features import StoreFeatures, store_features
from tlp_tvm.evaluation.baselines.training_tables import labelled
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Programs, Tell, labels_of


@dataclass(frozen=True)
class Boosting:
    """How trees are fitted to programs of many tasks.

    Attributes:
        parameters: of XGBoost.
        rounds: trees; None for `BaselineSettings.rounds`.
        patience: rounds without a lower error on the programs that are learned from, after which it ends; 0
            for never.
        weighted: whether a program's error counts as much as its label.
        kinds: whether rows end with what operators the task has.
    """

    parameters: dict[str, Any]
    rounds: int | None = None
    patience: int = 0
    weighted: bool = True
    kinds: bool = False


_TREES = {"base_score": 0.0, "disable_default_eval_metric": 1}
TVMS = _TREES | {"max_depth": 10, "gamma": 0.001, "min_child_weight": 0, "eta": 0.2}
"""Of `XGBModelInternal` in TVM's `auto_scheduler/cost_model/xgb_model.py`, which has it fit one search."""
TENSETS = _TREES | {"max_depth": 6, "gamma": 0.003, "min_child_weight": 2, "eta": 0.2}
"""Of the same file in TenSet's TVM, which has it fit many tasks; unweighted, and rows know the operators."""
PARAMETERS = TVMS | {"max_depth": 6, "eta": 0.1, "subsample": 0.8, "tree_method": "hist", "max_bin": 64}
"""TVM's, but for shallower trees, a lower rate and parts of the rows."""

BOOSTINGS = {
    "xgboost-features": Boosting(PARAMETERS),
    "xgboost-tvm": Boosting(TVMS, rounds=10_000, patience=50),
    "xgboost-tenset": Boosting(TENSETS, rounds=300, patience=100, weighted=False, kinds=True),
}


class XGBoostFeatures:
    """One model per platform. In a search it boosts on with the labels of the task."""

    is_fixed = False

    def __init__(self, settings: BaselineSettings, name: str = "xgboost-features") -> None:
        """One of `BOOSTINGS`."""
        self.name = name
        self.settings = settings
        self._how = BOOSTINGS[name]
        self.notes: list[str] = []
        self._corpus: Corpus | None = None
        self._features: StoreFeatures | None = None
        self._seed = 0
        self._models: list[Any] = []
        self._marks: NDArray[np.float32]

    def fit(self, corpus: Corpus, seed: int, tell: Tell) -> dict[int, str]:
        """Compute features if need be, and fit all training tasks that have some, for each platform."""
        self._features = store_features(corpus, self.settings.cache, tell, self.settings.network_files)
        self._corpus, self._seed, self._models = corpus, seed, []
        self._marks = kinds_of_tasks(corpus.whole.tasks)
        self.notes, unscored = self._features.notes(corpus), self._features.unscored(corpus)
        tasks = [task for task in corpus.training_tasks if task not in self._features.missing]
        if not tasks:
            return unscored
        for column, platform in enumerate(corpus.whole.platforms):
            tell(f"{self.name}, seed {seed}: {platform.name}")
            programs = labelled(corpus, tasks, column, self.settings.most_programs, seed)
            labels = corpus.whole.labels[programs, column]
            self._models.append(self._boosted(programs, labels, self._how.rounds or self.settings.rounds))
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
        xgboost = load_xgboost()
        rows, owner = self._rows(programs)
        parameters = common_parameters(self._seed, len(rows)) | self._how.parameters
        data = xgboost.DMatrix(rows, nthread=1)
        objective = summed_error(owner, labels, weighted=self._how.weighted)
        more: dict[str, Any] = {}
        if self._how.patience and start is None:

            def error(stores: NDArray[Any], _: Any) -> tuple[str, float]:
                sums = np.bincount(owner, stores, minlength=len(labels))
                return "rmse", float(np.sqrt(np.square(sums - labels).mean()))

            stop = xgboost.callback.EarlyStopping(rounds=self._how.patience)
            more = {"custom_metric": error, "evals": [(data, "learned")], "callbacks": [stop]}
        return xgboost.train(
            parameters, data, rounds, obj=objective, xgb_model=start, verbose_eval=False, **more
        )

    def _rows(self, programs: Programs) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        assert self._features is not None
        assert self._corpus is not None
        rows, owner = self._features.of(programs)
        if self._how.kinds:
            rows = marked(rows, self._marks[self._corpus.whole.task_index[programs][owner]])
        return rows, owner

    def _sums(self, model: Any, programs: Programs) -> NDArray[np.float64]:
        assert self._features is not None
        rows, owner = self._rows(programs)
        stores = model.predict(load_xgboost().DMatrix(rows, nthread=1), output_margin=True)
        sums = np.bincount(owner, stores, minlength=len(programs)).astype(np.float64)
        sums[self._features.counts[programs] == 0] = -np.inf  # not lowered: the last that anyone would run
        return sums


def summed_error(
    owner: NDArray[np.int64], labels: NDArray[Any], *, weighted: bool = True
) -> Callable[[NDArray[Any], Any], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Squared error of the sum over a program's stores; weighted by the label, as in TVM, or not."""
    weights = np.maximum(labels, 1e-6).astype(np.float64) if weighted else np.ones(len(labels))

    def gradient(stores: NDArray[Any], _: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sums = np.bincount(owner, stores, minlength=len(labels))
        return (weights * (sums - labels))[owner], weights[owner]

    return gradient
