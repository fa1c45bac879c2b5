"""SearchScores: what the cost models of all frameworks share: a model scores, measurements refine that."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.errors import ModelFileError, TuningError
from tlp_tvm.model.adaptation import TaskAdapter

if TYPE_CHECKING:
    from tlp_tvm.layout import FeatureLayout

MAX_SCORE = 80.0
"""Scores are bounded by this before `exp`, which float32 can hold up to 88."""


class Scorer(Protocol):
    """What is asked of a model: `tlp_tvm.model.ScoringModel`, or anything else that can do this."""

    @property
    def layout(self) -> FeatureLayout:
        """Of the embeddings that it scores."""
        ...

    @property
    def platforms(self) -> tuple[str, ...]:
        """Names of its heads."""
        ...

    def score(self, X: NDArray[np.float32], platform: str | None = None) -> NDArray[np.float32]:
        """One number a program, higher is better: (N, L, E) -> (N,); None for the mean of all heads."""
        ...

    def platform_of(self, target: str) -> str:
        """The platform that a TVM target names; raises ModelFileError if none fits."""
        ...


class SearchScores:
    """Scores embeddings with a model, and learns from a search's measurements if asked to.

    Attributes:
        model: that scores.
        platform: the head that scores; None for the one that a task's target names, or else the mean of all.
        online: whether it learns from the measurements of the search.
        error: the first error inside a call from TVM, whose frames lose it in older versions.
    """

    framework: ClassVar[str]
    """Whose programs it scores."""

    model: Scorer
    platform: str | None
    online: bool
    error: BaseException | None

    def use_model(
        self, model: Scorer | str | os.PathLike[str], platform: str | None, device: str, online: bool
    ) -> None:
        """Take a model, loading it if need be. The arguments are those of a cost model's constructor.

        Raises:
            ModelFileError: the model cannot be read, or reads programs of another framework.
            TuningError: the model has no such platform.
        """
        self.model = _loaded(model, device)
        layout = self.model.layout
        if layout.framework != self.framework:
            raise ModelFileError(
                f"{name_of(self.model)}: expected a model of {self.framework}, found the layout "
                f'"{layout.name}" of {layout.framework}; '
                f"choose a model trained on programs of {self.framework}"
            )
        if platform is not None and platform not in self.model.platforms:
            raise TuningError(
                f"{name_of(self.model)}: expected one of its platforms {', '.join(self.model.platforms)}, "
                f'found "{platform}"'
            )
        self.platform = platform
        self.error = None
        self.online = online
        self._platforms: dict[str, str | None] = {}
        self._adapters: dict[str, TaskAdapter] = {}

    def platform_for(self, target: str) -> str | None:
        """The head that scores programs for a target.

        Args:
            target: TVM target.

        Returns:
            The chosen platform, or else the one that the target names, or else None: the mean of all heads.
        """
        if self.platform is not None:
            return self.platform
        if target not in self._platforms:
            self._platforms[target] = _platform_of(self.model, target)
        return self._platforms[target]

    def scores_of(self, key: str, target: str, embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of a task's programs.

        Args:
            key: of the task.
            target: TVM target.
            embeddings: (n, L, E) in the model's layout.

        Returns:
            (n,) float32: the model's own scores; or, of a task that was measured online, the expected
            logarithm of the speed relative to the fastest measured program.

        Raises:
            ModelFileError: the model gave something that is no finite number.
        """
        own = self._own_scores(embeddings, target)
        adapter = self._adapters.get(key)
        return own if adapter is None or not adapter.ready else adapter.speeds(embeddings, own)

    def _own_scores(self, embeddings: NDArray[np.float32], target: str) -> NDArray[np.float32]:
        scores = self.model.score(embeddings, self.platform_for(target))
        if bad := int(np.count_nonzero(~np.isfinite(scores))):
            raise ModelFileError(
                f"{name_of(self.model)}: expected finite scores, found {bad} of {len(scores)} that are not; "
                "train or export the model again"
            )
        return scores

    def learn(
        self, workload_key: str, target: str, embeddings: NDArray[np.float32], latencies: NDArray[np.float64]
    ) -> None:
        """Take in measurements of a task, of this search or an earlier one; the model itself stays as it is.

        Args:
            workload_key: of the task.
            target: TVM target.
            embeddings: (n, L, E) in the model's layout.
            latencies: (n,) seconds; infinity where a program failed.
        """
        adapter = self._adapters.setdefault(workload_key, TaskAdapter())
        adapter.learn(embeddings, self._own_scores(embeddings, target), latencies)


def as_weights(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """What TVM's searches breed by: positive and monotone in the scores.

    They pick parents with a probability proportional to this number, and never those of a negative one. `exp`
    makes that fit models trained on pairs: there a difference of two scores is the logarithm of the odds that
    one program is faster than the other. Online, this is the expected relative speed.
    """
    return np.exp(np.clip(scores, -MAX_SCORE, MAX_SCORE))


def name_of(model: Scorer) -> str:
    """What messages call a model."""
    return f"model {getattr(model, 'name', type(model).__name__)}"


def _loaded(model: Scorer | str | os.PathLike[str], device: str) -> Scorer:
    if not isinstance(model, str | os.PathLike):
        return model
    from tlp_tvm.model.checkpoint import load_model

    loaded: Scorer = load_model(model).to(device)
    return loaded


def _platform_of(model: Scorer, target: str) -> str | None:
    try:
        return str(model.platform_of(target))
    except ModelFileError:  # no head is of that target
        return None
