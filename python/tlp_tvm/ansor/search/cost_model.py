"""TLPCostModel: a TLP model in the place of the cost model that TVM's evolutionary search asks.

    policy = auto_scheduler.SketchPolicy(task, TLPCostModel("x86", "zen3-avx2-2t"))

TVM calls `predict` with an Array of states, some ten thousand in a search round, and breeds from those with
the best answers. The states are read natively out of that Array; no Python object is made for a state.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.search_scores import SearchScores, as_weights
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.gpu_check import GpuCheck
from tlp_tvm.ansor.reading.states import extract_states
from tlp_tvm.latency import latency_of

load_tvm()
_PythonBasedModel = importlib.import_module("tvm.auto_scheduler.cost_model.cost_model").PythonBasedModel

BATCH = 8192
"""States whose embeddings are in memory at a time; a search round of TVM asks for about 2,000 at once."""


class TLPCostModel(SearchScores, _PythonBasedModel):  # type: ignore[misc, valid-type]
    """Scores programs in TVM's search with a TLP model; `SearchScores` says what it holds."""

    framework = "ansor"

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
        for begin in range(0, count, BATCH):
            # A slice of an Array is a Python list; the Arrays that TVM's search sends are read whole.
            part = states if count <= BATCH else states[begin : min(begin + BATCH, count)]
            embeddings = extract_states(part, self.model.layout)
            own = self.scores_of(str(task.workload_key), str(task.target), embeddings)
            scores[begin : begin + len(own)] = np.where(check.faults(part), -np.inf, own)
        return scores

    @functools.cached_property
    def _checks(self) -> dict[tuple[str, str], GpuCheck]:
        return {}

    def _check_of(self, task: Any) -> GpuCheck:
        key = (str(task.workload_key), str(task.target))
        with self._lock:
            if key in self._checks:
                return self._checks[key]
        check = GpuCheck(task)
        with self._lock:
            return self._checks.setdefault(key, check)

    def predict(self, task: Any, states: Any) -> NDArray[np.float32]:
        """What TVM breeds by (`as_weights`).

        Args:
            task: `auto_scheduler.SearchTask` of the states.
            states: a tvm Array or list of states.

        Returns:
            (N,) float32, finite and positive; minus infinity, as TVM expects, for programs that cannot run.

        Raises:
            TuningError: the user interrupted the search in here, where TVM would swallow `KeyboardInterrupt`.
        """
        with self.errors_kept():
            return as_weights(self.scores(task, states))

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
        latencies = [latency_of(result) for result in results]
        task = inputs[0].task
        embeddings = extract_states([measured.state for measured in inputs], self.model.layout)
        self.learn(str(task.workload_key), str(task.target), embeddings, np.asarray(latencies, np.float64))
