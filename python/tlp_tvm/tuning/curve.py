"""The curve of a tuning as a plot: estimated latency of the network against measured programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tlp_tvm.files import fresh_file
from tlp_tvm.tuning.history import History


def draw_curve(history: History, weights: Sequence[int], title: str, path: Path) -> None:
    """Write the curve as PNG, to a new name first.

    Args:
        history: what was measured; of some task a program ran.
        weights: (tasks,) how often each task appears in the network.
        title: of the picture.
        path: of the PNG.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    estimates = history.estimates(weights) * 1e3
    trials = np.arange(1, len(history) + 1)
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.step(trials, estimates, where="post", linewidth=1.8)
    axes.annotate(
        f"{estimates[-1]:.3g} ms",
        (trials[-1], estimates[-1]),
        (-4, 8),
        textcoords="offset points",
        ha="right",
    )
    axes.set_ylim(0, estimates[0] * 1.1)
    axes.set_xlim(0, len(history))
    axes.set_xlabel("programs measured")
    axes.set_ylabel("sum of the tasks' best, weighted (ms)")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    FigureCanvasAgg(figure)  # no backend of the user's is touched
    with fresh_file(path) as fresh:
        figure.savefig(fresh, format="png")
