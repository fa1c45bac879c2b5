"""SearchScores, shared by all cost models: a model scores, and measurements refine the scores."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.adaptation import TaskAdapter
from tlp_tvm.errors import ModelFileError, TuningError
from tlp_tvm.model.scoring import MEAN

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
        """One number per program, higher is better: (N, L, E) -> (N,); "mean" for the mean of all heads."""
        ...

    def platform_of(self, target: str) -> str:
        """The platform that a TVM target names; raises ModelFileError if none fits."""
        ...


class SearchScores:
    """Scores embeddings with a model, and learns from a search's measurements if asked to. Thread-safe.

    Attributes:
        model: that scores.
        platform: the head that scores, or "mean"; None for the one that a task's target names.
        online: whether it learns from the measurements of the search.
        error: the first error inside a call from TVM, whose frames lose it in older versions.
    """

    framework: ClassVar[str]
    """Whose programs it scores."""

    model: Scorer
    platform: str | None
    online: bool
    error: BaseException | None

    def __init__(
        self,
        model: Scorer | str | os.PathLike[str],
        platform: str | None = None,
        device: str = "auto",
        online: bool = False,
    ) -> None:
        """Load the model if need be.

        Args:
            model: a model, or what `tlp_tvm.load_model` takes: a shipped name, a checkpoint folder or an
                exported file.
            platform: one of the model's platforms, or "mean" for the mean of all heads; None for the one that
                a task's target names.
            device: "auto", or torch's name of the device to score on.
            online: whether the model learns from the measurements of the search.

        Raises:
            ModelFileError: the model cannot be read, or reads programs of another framework.
            TuningError: the model has no such platform.
        """
        super().__init__()  # of TVM's own cost model, where that has one
        self.model = load_scorer(model, device)
        layout = self.model.layout
        if layout.framework != self.framework:
            raise ModelFileError(
                f"{name_of(self.model)}: expected a model of {self.framework}, found the layout "
                f'"{layout.name}" of {layout.framework}; '
                f"choose a model trained on programs of {self.framework}"
            )
        if platform not in (None, MEAN, *self.model.platforms):
            raise TuningError(
                f"{name_of(self.model)}: expected one of its platforms {', '.join(self.model.platforms)}, "
                f'found "{platform}"'
            )
        self.platform = platform
        self.error = None
        self.online = online
        self._platforms: dict[str, str] = {}
        self._adapters: dict[str, TaskAdapter] = {}
        self._targets: dict[str, str] = {}
        """Of the tasks that it learned from."""
        self._lock = threading.Lock()
        """Of the adapters; never held while anything is computed."""

    def platform_for(self, target: str) -> str:
        """The head that scores programs for a target.

        Args:
            target: TVM target.

        Returns:
            The chosen platform, or else the one that the target names.

        Raises:
            ModelFileError: none was chosen, and the target names none, or more than one.
        """
        if self.platform is not None:
            return self.platform
        if target not in self._platforms:
            self._platforms[target] = self.model.platform_of(target)
        return self._platforms[target]

    def scores_of(self, key: str, target: str, embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of a task's programs.

        Args:
            key: of the task.
            target: TVM target.
            embeddings: (n, L, E) in the model's layout.

        Returns:
            (n,) float32: the model's own scores; or, of a task that was measured online, the expected
            speed relative to the fastest measured program (`TaskAdapter.speeds`).

        Raises:
            ModelFileError: the model gave something that is no finite number.
        """
        own = self._own_scores(embeddings, target)
        adapter = self.adapter(key)
        return own if adapter is None or not adapter.ready else adapter.speeds(embeddings, own)

    def adapter(self, key: str) -> TaskAdapter | None:
        """What was learned of a task; None if nothing was.

        Args:
            key: of the task.
        """
        with self._lock:
            return self._adapters.get(key)

    @contextmanager
    def errors_kept(self) -> Iterator[None]:
        """Keep the first error inside a call from TVM in `error`.

        Raises:
            TuningError: the user interrupted the search in here, where TVM would swallow `KeyboardInterrupt`.
        """
        try:
            yield
        except KeyboardInterrupt as interrupt:
            self.error = self.error or interrupt
            raise TuningError("the search was interrupted") from interrupt
        except Exception as error:
            self.error = self.error or error
            raise

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
        with self._lock:
            adapter = self._adapters.setdefault(workload_key, TaskAdapter())
            self._targets[workload_key] = target
        adapter.learn(embeddings, self._own_scores(embeddings, target), latencies)


def as_weights(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """What TVM's searches breed by: positive and monotone in the scores.

    They pick parents with a probability proportional to this number, and never those of a negative one. `exp`
    makes that fit models trained on pairs: there a difference of two scores is the logarithm of the odds that
    one program is faster than the other. Minus infinity, a program that cannot run, stays what it is.
    """
    weights = np.exp(np.clip(scores, -MAX_SCORE, MAX_SCORE))
    return np.where(np.isneginf(scores), scores, weights)


def model_name(model: Scorer) -> str:
    """What a model is called."""
    return str(getattr(model, "name", type(model).__name__))


def name_of(model: Scorer) -> str:
    """What messages call a model."""
    return f"model {model_name(model)}"


def load_scorer(model: Scorer | str | os.PathLike[str], device: str = "auto") -> Scorer:
    """A model as it is, or the one that `tlp_tvm.load_model` finds, on a device."""
    if not isinstance(model, str | os.PathLike):
        return model
    from tlp_tvm.model.checkpoint import load_model

    loaded: Scorer = load_model(model).to(device)
    return loaded


def model_source(model: Any) -> str:
    """By what a model can be loaded again from any working directory.

    Args:
        model: what `tlp_tvm.load_model` takes, or a model, which has its name alone.
    """
    if not isinstance(model, str | os.PathLike):
        return str(getattr(model, "name", type(model).__name__))
    from tlp_tvm.model.checkpoint import shipped_models

    return str(model) if model in shipped_models() else str(Path(model).resolve())
