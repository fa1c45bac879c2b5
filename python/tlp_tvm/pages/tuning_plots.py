"""Plots of a tuning run as SVG text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.pages.page import Html
from tlp_tvm.pages.past_run import TuningRun
from tlp_tvm.pages.plots import SMALL, bars, colour, draw, fitting_scale, short
from tlp_tvm.pages.predicted import Predicted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TASKS_DRAWN = 6
"""More lines in one plot cannot be told apart."""

SCATTERS = 12

_PROGRAMS = "Weighted sum of the tasks' best latencies so far."
_WARM = " Programs of earlier logs are not included."
_SECONDS = "The same against wall-clock time, searching and measuring included."
_TASKS = "First program that ran / best so far, per task, after each of its programs."
_SPENT = "Seconds of all commands of the run, by step."


def curves(run: TuningRun, heaviest: Sequence[int]) -> list[tuple[str, str, Html]]:
    """The course of the run.

    Args:
        run: what to draw.
        heaviest: indices of the tasks, largest share of the network first.

    Returns:
        Title, caption and SVG of each; an empty SVG where there is nothing to draw.
    """
    estimates = run.history.estimates([task.weight for task in run.tasks]) * 1e3
    programs = np.arange(1, len(run.history) + 1, dtype=np.float64)
    text = _SECONDS
    if run.content.get("reused"):
        text += " The run was stopped and resumed: the break is included."
    drawn = draw(partial(_estimate, programs, estimates, "programs measured"))
    clock = run.clock
    on_wall = draw(partial(_estimate, clock, estimates, "seconds")) if len(clock) else Html()
    seconds = {name: float(value) for name, value in run.content.get("seconds", {}).items()}
    return [
        ("The network against programs measured", _PROGRAMS + _WARM * bool(run.content.get("warm")), drawn),
        ("The network against time", text, on_wall),
        ("The tasks", _TASKS, draw(partial(_tasks, run, heaviest[:TASKS_DRAWN]))),
        ("Where the time went", _SPENT, draw(partial(_spent, seconds)) if seconds else Html()),
    ]


def scatters(run: TuningRun, predicted: Predicted, heaviest: Sequence[int]) -> list[tuple[str, str, Html]]:
    """Score against latency, one plot per task; as `curves`."""
    pictures = []
    for i in heaviest[:SCATTERS]:
        ran = (run.history.task_ids == i) & np.isfinite(run.history.latencies)
        if not ran.any():
            continue
        rho = predicted.correlation[i]
        svg = draw(partial(_scatter, predicted.scores[ran], run.history.latencies[ran] * 1e3), SMALL)
        text = f"{ran.sum()} programs ran" if np.isnan(rho) else f"rank correlation {rho:.2f}"
        pictures.append((run.tasks[i].name, text, svg))
    return pictures


def _estimate(x: NDArray[np.float64], y: NDArray[np.float64], label: str, axes: Axes) -> bool:
    if not len(y) or y[0] <= 0:
        return False
    axes.step(x, y, where="post", color=colour(0), linewidth=1.8)
    axes.plot(x[-1:], y[-1:], "o", color=colour(0), markersize=5, clip_on=False)
    axes.annotate(
        f"{y[-1]:.3g} ms", (x[-1], y[-1]), (-4, -14), textcoords="offset points", ha="right", color=colour(0)
    )
    _scale(axes, y)
    axes.set_xlim(0, x[-1] * 1.01)
    axes.set_xlabel(label)
    axes.set_ylabel("sum of the tasks' best, ms")
    return True


def _scale(axes: Axes, y: NDArray[np.float64]) -> None:
    low, high = float(y.min()), float(y.max())
    fitting_scale(axes, "y", low, high)
    if axes.get_yscale() == "log":
        axes.set_ylim(low * 0.7, high * 1.15)
    else:
        axes.set_ylim(0, high * 1.12)


def _tasks(run: TuningRun, chosen: Sequence[int], axes: Axes) -> bool:
    highest = 0.0
    for position, i in enumerate(chosen):
        latencies = run.history.latencies[run.history.task_ids == i]
        ran = np.isfinite(latencies)
        if not ran.any():
            continue
        best = np.minimum.accumulate(latencies)
        gain = np.where(np.isfinite(best), run.history.first[i] / best, np.nan)
        name = run.tasks[i].name
        axes.step(
            np.arange(1, len(gain) + 1),
            gain,
            where="post",
            color=colour(position),
            label=short(name),
            linewidth=1.6,
            marker="o" if len(gain) == 1 else None,
        )
        highest = max(highest, float(np.nanmax(gain)))
    if not highest:
        return False
    fitting_scale(axes, "y", 1.0, highest)
    axes.set_ylim(bottom=0.95 if axes.get_yscale() == "log" else 1 - 0.05 * max(highest - 1, 0.1))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_xlim(left=0)
    axes.set_xlabel("programs of the task")
    axes.set_ylabel("speedup over its first")
    axes.legend(frameon=False, fontsize=8.5)
    return True


def _spent(seconds: Mapping[str, float], axes: Axes) -> bool:
    return bars({name: {name: value} for name, value in seconds.items()}, axes, legend=False)


def _scatter(scores: NDArray[np.float32], latencies: NDArray[np.float64], axes: Axes) -> bool:
    from matplotlib.ticker import MaxNLocator

    order = np.linspace(0, 1, len(scores))
    axes.scatter(
        scores, latencies, s=22, c=order, cmap="viridis_r", vmin=-0.1, vmax=1, linewidth=0, alpha=0.9
    )
    axes.plot(scores[np.argmin(latencies)], latencies.min(), "o", mfc="none", mec="#c23b5a", ms=10, mew=1.4)
    fitting_scale(axes, "y", float(latencies.min()), float(latencies.max()))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("score")
    axes.set_ylabel("latency, ms")
    return True
