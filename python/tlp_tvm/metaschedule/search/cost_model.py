"""TLPCostModel: a TLP model in the place of the cost model that MetaSchedule's search asks.

    database = ms.tune_tir(mod, target, work_dir, max_trials_global=64, cost_model=TLPCostModel(model))

MetaSchedule calls `predict` with an Array of up to 512 candidates, and breeds from those with the best
answers. Their traces are read natively out of that Array; no Python object is made for a candidate.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.search_scores import SearchScores, as_weights, name_of
from tlp_tvm.errors import ModelFileError, StateError, TuningError
from tlp_tvm.files import write_whole
from tlp_tvm.latency import latency_of_costs
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import flags_of
from tlp_tvm.metaschedule.reading.traces import extract_traces
from tlp_tvm.metaschedule.reading.workload_key import workload_key

load_tvm()

from tvm.ir.utils import derived_object  # noqa: E402 - which TVM is settled by load_tvm
from tvm.s_tir.meta_schedule.cost_model import PyCostModel  # noqa: E402
from tvm_ffi import register_error  # noqa: E402

for _error in (ModelFileError, StateError, TuningError):  # so that they come out of TVM as they went in
    register_error(_error.__name__, _error)

FORMAT = "tlp-tvm-measurements"


@derived_object
class TLPCostModel(PyCostModel, SearchScores):  # type: ignore[misc]
    """Scores programs in MetaSchedule's search with a TLP model; `SearchScores` says what it holds."""

    framework = "metaschedule"

    def scores(self, context: Any, candidates: Any) -> NDArray[np.float32]:
        """The logarithm of what `predict` gives: any finite number, higher is better.

        Args:
            context: `ms.TuneContext` of the task.
            candidates: an Array or list of `ms.MeasureCandidate`, or of schedules or traces.

        Returns:
            (N,) float32: the model's own scores; or, of a task that was measured online, the expected
            speed relative to the fastest measured program (`TaskAdapter.speeds`).

        Raises:
            ModelFileError: the model gave something that is no finite number.
        """
        embeddings = extract_traces(candidates, self.model.layout)
        if len(embeddings) == 0:
            return np.empty(0, np.float32)
        return self.scores_of(_key_of(context), flags_of(context.target), embeddings)

    def predict(self, context: Any, candidates: Any) -> NDArray[np.float64]:
        """What MetaSchedule breeds by: positive and monotone in the scores (`as_weights`).

        Args:
            context: `ms.TuneContext` of the task.
            candidates: an Array or list of `ms.MeasureCandidate`.

        Returns:
            (N,) float64, finite and positive.

        Raises:
            TuningError: the user interrupted the search in here.
        """
        with self.errors_kept():
            return np.asarray(as_weights(self.scores(context, candidates)), np.float64)

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """MetaSchedule hands over the measurements of a round; a model that does not learn leaves them.

        Args:
            context: `ms.TuneContext` of the task.
            candidates: `ms.MeasureCandidate`s.
            results: `ms.RunnerResult`s.
        """
        if not self.online or len(candidates) == 0:
            return
        latencies = np.array([_latency_of(result) for result in results], np.float64)
        embeddings = extract_traces(candidates, self.model.layout)
        self.learn(_key_of(context), flags_of(context.target), embeddings, latencies)

    def save(self, path: str) -> None:
        """Write what was learned online: the measured programs of every task. The model is a file already.

        Args:
            path: of the file, in NumPy's .npz format whatever it is called; nothing in it is pickled.
        """
        measured = {key: adapter.measured for key, adapter in self._adapters.items()}
        tasks = [key for key, known in measured.items() if len(known.speeds)]
        about = {
            "format": FORMAT,
            "layout": self.model.layout.name,
            "layout_digest": self.model.layout.digest,
            "tasks": [{"key": key, "target": self._targets.get(key, "")} for key in tasks],
        }
        arrays: dict[str, NDArray[Any]] = {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}
        for i, key in enumerate(tasks):
            arrays[f"programs{i}"] = measured[key].embeddings
            arrays[f"latencies{i}"] = np.exp(-measured[key].speeds)
        data = io.BytesIO()
        np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
        write_whole(path, data.getvalue())

    def load(self, path: str) -> None:
        """Learn what `save` wrote, of this model or another with the same layout; turns online learning on.

        Args:
            path: of the file.

        Raises:
            ModelFileError: the file is damaged, or of another layout.
            OSError: it cannot be read.
        """
        layout = self.model.layout
        data = Path(path).read_bytes()
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                about = json.loads(arrays["about"].tobytes())
                if about["format"] != FORMAT:
                    raise KeyError(about["format"])
                programs = [arrays[f"programs{i}"] for i in range(len(about["tasks"]))]
                latencies = [arrays[f"latencies{i}"] for i in range(len(about["tasks"]))]
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ModelFileError(
                f"{path}: expected measurements that a TLPCostModel saved, found {error}"
            ) from error
        if about["layout_digest"] != layout.digest:
            raise ModelFileError(
                f'{path}: expected measurements in the layout "{layout.name}" ({layout.digest}) of '
                f'{name_of(self.model)}, found "{about["layout"]}" ({about["layout_digest"]}); '
                "load them into a cost model with that layout"
            )
        self.online = True
        for task, rows, seconds in zip(about["tasks"], programs, latencies, strict=True):
            shape = (len(rows), layout.length, layout.width)
            self.learn(task["key"], task["target"], rows.reshape(shape), seconds)


def _key_of(context: Any) -> str:
    """A task's program, whatever its name: every single task of MetaSchedule is called "main"."""
    if context.mod is None:
        return str(context.task_name)
    return workload_key(context.mod)


def _latency_of(result: Any) -> float:
    """Seconds of a `ms.RunnerResult`; infinity where it failed."""
    if result.error_msg is not None or not result.run_secs:
        return float("inf")
    return latency_of_costs([float(getattr(seconds, "value", seconds)) for seconds in result.run_secs])
