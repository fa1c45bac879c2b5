"""Rankers: trained models and baselines in an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.adaptation import TaskAdapter
from tlp_tvm.embedding import Embedding
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.layout import FeatureLayout

Programs = NDArray[np.int64]
Tell = Callable[[str], None]

AT_ONCE = 16384
"""Programs that a model scores between two looks at the memory they take."""


class Ranker(Protocol):
    """Scores programs by their places in a corpus; the seed determines the scores."""

    name: str
    is_fixed: bool
    """It does not depend on the seed, so it is fitted once."""
    notes: list[str]
    """What readers of its numbers should know."""

    def fit(self, corpus: Corpus, seed: int, tell: Tell) -> dict[int, str]:
        """Learn from the training tasks of a corpus; its other labels are never read.

        Args:
            corpus: what to learn from, and what will be asked about.
            seed: of every random choice.
            tell: receives a line before each long step.

        Returns:
            Place of a task in the corpus -> why its programs cannot be scored; usually nothing.

        Raises:
            DatasetError: there is nothing to learn from.
        """
        ...

    def scores(self, programs: Programs, column: int) -> NDArray[np.float64]:
        """Scores on one platform.

        Args:
            programs: (n,) places in the corpus.
            column: the platform's.

        Returns:
            (n,) higher is better; comparable within a task.
        """
        ...

    def scores_after(self, seen: Programs, rest: Programs, column: int) -> NDArray[np.float64]:
        """Scores once some programs of the same task have been measured, as in a search.

        Args:
            seen: programs of one task, whose latencies on the platform may be read.
            rest: (n,) the programs to score, of the same task.
            column: the platform's.

        Returns:
            (n,) higher is better.
        """
        ...


class Scorer(Protocol):
    """The part of `ScoringModel` that an evaluation needs."""

    name: str
    layout: FeatureLayout
    platforms: tuple[str, ...]

    def score_all(self, X: Embedding) -> NDArray[np.float32]:
        """(N, P) scores of every head."""
        ...

    def column(self, platform: str) -> int:
        """The place of a platform among the heads."""
        ...

    def platform_of(self, target: str) -> str:
        """The platform that a TVM target names."""
        ...


class ModelRanker:
    """A trained model; in a search it learns as `tlp-tvm tune` lets it (`TaskAdapter`)."""

    is_fixed = True

    def __init__(self, model: Scorer, name: str = "") -> None:
        """Wrap a model.

        Args:
            model: what scores.
            name: what to call it; the model's own name if empty.
        """
        self.model = model
        self.name = name or model.name
        self.notes: list[str] = []
        self._corpus: Corpus | None = None
        self._scores: NDArray[np.float32] = np.empty((0, 0), np.float32)

    def fit(self, corpus: Corpus, seed: int, tell: Tell) -> dict[int, str]:
        """Score all judged programs once.

        Raises:
            ModelFileError: the model has no head for a platform of the corpus.
        """
        heads = [self._head(corpus, p.name, p.target) for p in corpus.whole.platforms]
        self._corpus = corpus
        self._scores = np.full((len(corpus.whole), len(heads)), np.nan, np.float32)
        for begin in range(0, len(corpus.judged_programs), AT_ONCE):
            part = corpus.judged_programs[begin : begin + AT_ONCE]
            self._scores[part] = self.model.score_all(corpus.embeddings(self.model.layout, part))[:, heads]
        return {}

    def _head(self, corpus: Corpus, platform: str, target: str) -> int:
        by_name = platform in self.model.platforms or corpus.platforms is not None
        return self.model.column(platform if by_name else self.model.platform_of(target))

    def scores(self, programs: Programs, column: int) -> NDArray[np.float64]:
        """What the platform's head says."""
        return np.asarray(self._scores[programs, column], np.float64)

    def scores_after(self, seen: Programs, rest: Programs, column: int) -> NDArray[np.float64]:
        """The head's scores, corrected by what was measured once enough of it ran."""
        assert self._corpus is not None
        return adapted(self._corpus, self.model.layout, self._scores[:, column], seen, rest, column)


def adapted(
    corpus: Corpus,
    layout: FeatureLayout,
    scores: NDArray[np.float32],
    seen: Programs,
    rest: Programs,
    column: int,
) -> NDArray[np.float64]:
    """A model's scores once some programs of a task have been measured, as `TLPCostModel` has them.

    Args:
        corpus: the programs.
        layout: that the model reads.
        scores: (programs of the corpus,) the model's own.
        seen: the programs that were measured, of one task.
        rest: (n,) the programs to score, of the same task.
        column: the platform's.

    Returns:
        (n,) higher is better; the model's own scores while too few programs ran.
    """
    adapter = TaskAdapter()
    adapter.learn(corpus.embeddings(layout, seen), scores[seen], corpus.whole.latencies[seen, column])
    if not adapter.ready:
        return scores[rest].astype(np.float64)
    return adapter.speeds(corpus.embeddings(layout, rest), scores[rest]).astype(np.float64)


def labels_of(latencies: NDArray[Any]) -> NDArray[np.float64]:
    """(n,) best latency / latency of measured programs of one task, in (0, 1]; 0 where measuring failed."""
    ran = np.isfinite(latencies)
    best = latencies[ran].min() if ran.any() else 1.0
    return np.where(ran, best / latencies, 0.0)
