"""A model's scores of a run's programs, compared with their measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.errors import LayoutError, ModelFileError
from tlp_tvm.metrics.correlation import spearman
from tlp_tvm.pages.past_run import TuningRun

if TYPE_CHECKING:
    from tlp_tvm.model.scoring import ScoringModel

ENOUGH = 3
"""Fewest programs that ran for a task to have a rank correlation."""


@dataclass(frozen=True)
class Predicted:
    """Scores of a run's programs.

    Attributes:
        model: its name.
        platform: the head that scored; "mean" for the mean of all.
        scores: (N,) higher is better, parallel to the run's history.
        correlation: (tasks,) Spearman's rank correlation of score and speed over the programs that ran; NaN
            where they are fewer than `ENOUGH`.
        place_of_best: (tasks,) place of the fastest program when the task's are sorted by score, from 1;
            0 for a task without programs that ran.
    """

    model: str
    platform: str
    scores: NDArray[np.float32]
    correlation: NDArray[np.float64]
    place_of_best: NDArray[np.int64]


def predict(run: TuningRun, name: str | None) -> Predicted | str:
    """Score a run's programs.

    Args:
        run: whose programs.
        name: a shipped model or a checkpoint folder; None for the run's own, if it is a shipped one. A
            received folder must not choose what is opened here, and an exported model is code.

    Returns:
        The scores, or a sentence that says why there are none.
    """
    if not len(run.history):
        return "No program was measured, so there is nothing to compare the model's scores with."
    from tlp_tvm.model.checkpoint import load_weights, shipped_models

    source = str(name or run.content.get("model_source", run.content["model"]))
    if name is None and source not in shipped_models():
        return (
            f"The run was tuned by {source}, which is not a shipped model, and a page opens no file that a "
            "run names. To compare scores with measurements, give --model a checkpoint folder."
        )
    try:
        model = load_weights(source)
        platform = _platform(model, run)
        scores = model.score(run.batch.encode(model.layout)[run.rows], platform)
    except (ModelFileError, LayoutError, OSError) as error:
        return f"The model cannot be loaded, so there are no scores: {error}; choose another with --model."
    tasks = range(len(run.tasks))
    found = [_of_task(scores, run.history.latencies, run.history.task_ids == i) for i in tasks]
    return Predicted(
        model=model.name,
        platform=platform,
        scores=scores,
        correlation=np.array([correlation for correlation, _ in found]),
        place_of_best=np.array([place for _, place in found], np.int64),
    )


def _platform(model: ScoringModel, run: TuningRun) -> str:
    """The head that run.json names, or else the one that the target names."""
    said = run.content.get("platform")
    from tlp_tvm.model.scoring import MEAN, platform_or_mean

    if said in (MEAN, *model.platforms):
        return str(said)
    return platform_or_mean(model, run.content["target"])


def _of_task(
    scores: NDArray[np.float32], latencies: NDArray[np.float64], mine: NDArray[np.bool_]
) -> tuple[float, int]:
    ran = mine & np.isfinite(latencies)
    if not ran.any():
        return float("nan"), 0
    best = np.flatnonzero(ran)[np.argmin(latencies[ran])]
    place = int(np.count_nonzero(scores[mine] > scores[best])) + 1
    if np.count_nonzero(ran) < ENOUGH:
        return float("nan"), place
    return spearman(scores[ran], -latencies[ran]), place
