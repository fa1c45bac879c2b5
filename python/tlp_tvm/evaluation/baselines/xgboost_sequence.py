"""XGBoost on the flattened embedding of a program, one model per platform."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.evaluation.baselines.baseline_settings import BaselineSettings
from tlp_tvm.evaluation.baselines.boosting import ROUNDS_SEEN, boost, scores_of
from tlp_tvm.evaluation.baselines.training_tables import held_out_score, hold_out, labelled
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Programs, Tell, labels_of
from tlp_tvm.layout import FeatureLayout

OBJECTIVES = ("rank:pairwise", "reg:squarederror")
"""Both are tried on a fifth of the training tasks; the one with the better top-1 and top-5 there is taken."""

_CHUNK = 8192


class XGBoostSequence:
    """Ranks by trees over the columns of the flattened sequence that vary in the training programs.

    In a search it boosts on with the labels of the task.
    """

    name = "xgboost-sequence"
    is_fixed = False

    def __init__(self, settings: BaselineSettings) -> None:
        self.settings = settings
        self.notes: list[str] = []
        self.objectives: dict[str, str] = {}
        """Platform -> the objective that was better on the tasks held out, with the first seed."""
        self._layout: FeatureLayout
        self._seed = 0
        self._corpus: Corpus
        self._columns: NDArray[np.intp] = np.empty(0, np.intp)
        self._models: list[Any] = []

    def fit(self, corpus: Corpus, seed: int, tell: Tell) -> dict[int, str]:
        """Choose the objective on tasks held out if need be; fit all training tasks, for each platform."""
        self._layout = FeatureLayout.preset(corpus.whole.layout.framework)
        if getattr(self, "_corpus", corpus) is not corpus:
            self.objectives = {}
        self._corpus, self._seed, self._models = corpus, seed, []
        self._columns = self._varying(corpus)
        for column, platform in enumerate(corpus.whole.platforms):
            tell(f"{self.name}, seed {seed}: {platform.name}")
            if platform.name not in self.objectives:
                self.objectives[platform.name] = self._better_objective(column)
            self._models.append(self._fit(corpus.training_tasks, column, self.objectives[platform.name]))
        chosen = ", ".join(f"{objective} for {name}" for name, objective in self.objectives.items())
        self.notes = [f"objective, chosen on training tasks held out: {chosen}"]
        return {}

    def _better_objective(self, column: int) -> str:
        fitted_on, held_out = hold_out(self._corpus, self._seed)
        found = {}
        for objective in OBJECTIVES:
            self._models.append(self._fit(fitted_on, column, objective))
            found[objective] = held_out_score(self._corpus, held_out, column, self)
            self._models.pop()
        return max(OBJECTIVES, key=lambda objective: found[objective])

    def scores(self, programs: Programs, column: int) -> NDArray[np.float64]:
        """What the platform's trees say."""
        return scores_of(self._models[column], self._table(programs))

    def scores_after(self, seen: Programs, rest: Programs, column: int) -> NDArray[np.float64]:
        """What they say after a few more trees for the labels of the task."""
        model = boost(
            self._table(seen),
            labels_of(self._corpus.whole.latencies[seen, column]),
            np.zeros(len(seen), np.int64),
            self.objectives[self._corpus.whole.platforms[column].name],
            ROUNDS_SEEN,
            self._seed,
            self._models[column],
        )
        return scores_of(model, self._table(rest))

    def _fit(self, tasks: list[int], column: int, objective: str) -> Any:
        programs = labelled(self._corpus, tasks, column, self.settings.most_programs, self._seed)
        whole = self._corpus.whole
        return boost(
            self._table(programs),
            whole.labels[programs, column],
            whole.task_index[programs],
            objective,
            self.settings.rounds,
            self._seed,
        )

    def _table(self, programs: Programs) -> NDArray[np.float32]:
        """(n, columns)."""
        table = np.empty((len(programs), len(self._columns)), np.float32)
        for begin in range(0, len(programs), _CHUNK):
            part = self._corpus.embeddings(self._layout, programs[begin : begin + _CHUNK])
            table[begin : begin + len(part)] = part.reshape(len(part), -1)[:, self._columns]
        return table

    def _varying(self, corpus: Corpus) -> NDArray[np.intp]:
        programs = np.concatenate([corpus.whole.programs_of(task) for task in corpus.training_tasks])
        low = high = None
        for begin in range(0, len(programs), _CHUNK):
            part = corpus.embeddings(self._layout, programs[begin : begin + _CHUNK])
            flat = part.reshape(len(part), -1)
            low = flat.min(0) if low is None else np.minimum(low, flat.min(0))
            high = flat.max(0) if high is None else np.maximum(high, flat.max(0))
        return np.flatnonzero(low != high)
