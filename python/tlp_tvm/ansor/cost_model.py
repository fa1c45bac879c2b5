"""TLPCostModel: a TLP model in the place of the cost model that TVM's evolutionary search asks.

    policy = auto_scheduler.SketchPolicy(task, TLPCostModel("epyc", "epyc-avx2-1c"))

TVM calls `predict` with an Array of states, some ten thousand in a search round, and breeds from those with
the best answers. The states are read natively out of that Array; no Python object is made for a state.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.ansor.adaptation import TaskAdapter
from tlp_tvm.ansor.adapted import Adapted
from tlp_tvm.ansor.gpu_check import GpuCheck
from tlp_tvm.ansor.locate import load_tvm
from tlp_tvm.errors import ModelFileError, TuningError
from tlp_tvm.features import extract_states
from tlp_tvm.model.scoring import MEAN

if TYPE_CHECKING:
    from tlp_tvm.layout import FeatureLayout

load_tvm()
_PythonBasedModel = importlib.import_module("tvm.auto_scheduler.cost_model.cost_model").PythonBasedModel

BATCH = 8192
"""States whose embeddings are in memory at a time; a search round of TVM asks for about 2,000 at once."""

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
        """One number a program, higher is better: (N, L, E) -> (N,); "mean" for the mean of all heads."""
        ...

    def platform_of(self, target: str) -> str:
        """The platform that a TVM target names; raises ModelFileError if none fits."""
        ...


class TLPCostModel(_PythonBasedModel):  # type: ignore[misc, valid-type]
    """Scores programs in TVM's search with a TLP model; safe to use from several threads.

    Attributes:
        model: that scores.
        platform: the head that scores, or "mean"; None for the one that a task's target names.
        online: whether it learns from the measurements of the search.
        error: the first error inside a call from TVM, whose frames lose it in older versions.
    """

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
            ModelFileError: the model cannot be read.
            TuningError: the model has no such platform.
        """
        super().__init__()
        self.model = load_scorer(model, device)
        if platform not in (None, MEAN, *self.model.platforms):
            raise TuningError(
                f"{_name(self.model)}: expected one of its platforms {', '.join(self.model.platforms)}, "
                f'found "{platform}"'
            )
        self.platform = platform
        self.error: BaseException | None = None
        self.online = online
        self._platforms: dict[str, str] = {}
        self._adapters: dict[str, TaskAdapter] = {}
        self._checks: dict[tuple[str, str], GpuCheck] = {}
        self._lock = threading.Lock()
        """Of the three above; never held while anything is computed."""

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

    def scores(self, task: Any, states: Any) -> NDArray[np.float32]:
        """The logarithm of what `predict` gives, higher is better.

        Args:
            task: `auto_scheduler.SearchTask` of the states.
            states: a tvm Array or list of states.

        Returns:
            (N,) float32: the model's own scores; or, of a task that was measured online, the expected
            speed relative to the fastest measured program (`TaskAdapter.speeds`). Minus infinity for programs
            that the task's GPU cannot run (`gpu_check`).

        Raises:
            ModelFileError: the model gave something that is no finite number.
        """
        count = len(states)
        scores = np.empty(count, np.float32)
        check = self._check_of(task)
        adapter = self.adapter(str(task.workload_key))
        for begin in range(0, count, BATCH):
            # A slice of an Array is a Python list; the Arrays that TVM's search sends are read whole.
            part = states if count <= BATCH else states[begin : min(begin + BATCH, count)]
            embeddings, own = self._scored(task, part)
            if adapter is not None and adapter.ready:
                own = adapter.speeds(embeddings, own)
            scores[begin : begin + len(own)] = np.where(check.faults(part), -np.inf, own)
        return scores

    def _check_of(self, task: Any) -> GpuCheck:
        key = (str(task.workload_key), str(task.target))
        with self._lock:
            if key in self._checks:
                return self._checks[key]
        check = GpuCheck(task)
        with self._lock:
            return self._checks.setdefault(key, check)

    def adapter(self, workload_key: str) -> TaskAdapter | None:
        """What was learned of a task; None if nothing was.

        Args:
            workload_key: of the task.
        """
        with self._lock:
            return self._adapters.get(workload_key)

    def _scored(self, task: Any, states: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Embeddings and the model's own scores."""
        embeddings = extract_states(states, self.model.layout)
        return embeddings, self._own_scores(embeddings, str(task.target))

    def _own_scores(self, embeddings: NDArray[np.float32], target: str) -> NDArray[np.float32]:
        scores = self.model.score(embeddings, self.platform_for(target))
        if bad := int(np.count_nonzero(~np.isfinite(scores))):
            raise ModelFileError(
                f"{_name(self.model)}: expected finite scores, found {bad} of {len(scores)} that are not; "
                "train or export the model again"
            )
        return scores

    def predict(self, task: Any, states: Any) -> NDArray[np.float32]:
        """What TVM breeds by: monotone in the scores, and positive but for programs that cannot run.

        TVM picks parents with a probability proportional to this number, and never those of a negative one.
        `exp` makes that fit models trained on pairs: there a difference of two scores is the logarithm of the
        odds that one program is faster than the other. Online, this is the expected relative speed.

        Args:
            task: `auto_scheduler.SearchTask` of the states.
            states: a tvm Array or list of states.

        Returns:
            (N,) float32, finite and positive; minus infinity, as TVM expects, for programs that cannot run.

        Raises:
            TuningError: the user interrupted the search in here, where TVM would swallow `KeyboardInterrupt`.
        """
        try:
            scores = self.scores(task, states)
            bounded = np.exp(np.clip(scores, -MAX_SCORE, MAX_SCORE))
            return np.where(np.isneginf(scores), scores, bounded)
        except KeyboardInterrupt as interrupt:
            self.error = self.error or interrupt
            raise TuningError("the search was interrupted") from interrupt
        except Exception as error:
            self.error = self.error or error
            raise

    def predict_stages(self, task: Any, states: Any) -> NDArray[np.float32]:
        """`predict` in TVM's packed form, which says that no breakdown by stage is known.

        The model sees a program as a whole. The form (TVM's `PythonBasedModel.predict_stages`) is the
        N scores, then for each state its number of scored stages, which is 0.

        Args:
            task: `auto_scheduler.SearchTask` of the states.
            states: a tvm Array or list of states.

        Returns:
            (2 N,) float32.
        """
        scores = self.predict(task, states)
        return np.concatenate([scores, np.zeros_like(scores)])

    def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """TVM hands over the measurements of a round; a model that does not learn online leaves them.

        Args:
            inputs: `auto_scheduler.MeasureInput`s of one task.
            results: `auto_scheduler.MeasureResult`s.
        """
        if not self.online or len(inputs) == 0:
            return
        latencies = [
            np.inf if result.error_no else np.mean([cost.value for cost in result.costs])
            for result in results
        ]
        task = inputs[0].task
        embeddings = extract_states([measured.state for measured in inputs], self.model.layout)
        self.learn(str(task.workload_key), str(task.target), embeddings, np.asarray(latencies, np.float64))

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
        adapter.learn(embeddings, self._own_scores(embeddings, target), latencies)

    def adapted(self) -> Adapted:
        """What it has learned so far, to be saved."""
        with self._lock:
            adapters = dict(self._adapters)
        tasks = {key: adapter.measured for key, adapter in adapters.items()}
        return Adapted(model_name(self.model), self.model.layout.name, tasks)

    def adopt(self, adapted: Adapted, target: str) -> None:
        """Go on from what was learned before, by this model or another of the same layout.

        Args:
            adapted: what `adapted` gave; replaces what was learned of its tasks.
            target: TVM target of its tasks.

        Raises:
            TuningError: it is of another layout.
        """
        layout = self.model.layout
        for key, measured in adapted.tasks.items():
            shape = measured.embeddings.shape[1:]
            if adapted.layout != layout.name or shape != (layout.length, layout.width):
                raise TuningError(
                    f"{_name(self.model)}: expected what was learned with the layout "
                    f'"{layout.name}" {layout.length} x {layout.width}, found "{adapted.layout}" '
                    f"{' x '.join(map(str, shape))}; learn again from the log"
                )
            adapter = TaskAdapter(measured, self._own_scores(measured.embeddings, target))
            with self._lock:
                self._adapters[key] = adapter


def load_scorer(model: Scorer | str | os.PathLike[str], device: str = "auto") -> Scorer:
    """A model as it is, or the one that `tlp_tvm.load_model` finds, on a device."""
    if not isinstance(model, str | os.PathLike):
        return model
    from tlp_tvm.model.checkpoint import load_model

    loaded: Scorer = load_model(model).to(device)
    return loaded


def model_name(model: Scorer) -> str:
    """What a model is called.

    Args:
        model: any that scores.
    """
    return str(getattr(model, "name", type(model).__name__))


def _name(model: Scorer) -> str:
    return f"model {model_name(model)}"
