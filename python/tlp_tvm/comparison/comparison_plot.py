"""A plot of a comparison: best latency of each task against the search's own time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from tlp_tvm.comparison.summary import Comparison
from tlp_tvm.files import fresh_file

_COLUMNS = 3


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw one panel per task, one line per search, as PNG.

    Args:
        comparison: with at least one group.
        path: of the picture.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    runs = comparison.runs()
    tasks = list(dict.fromkeys(run.task for run in runs))
    columns = min(_COLUMNS, len(tasks))
    rows = math.ceil(len(tasks) / columns)
    figure = Figure(figsize=(4.6 * columns, 3.4 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    colors = {name: f"C{i}" for i, name in enumerate(comparison.contenders)}
    for panel, task in zip(panels, tasks, strict=False):
        for run in (run for run in runs if run.task == task):
            ran = np.isfinite(run.best)
            label = run.contender if run.seed == 0 else None
            panel.step(
                run.clock[ran],
                run.best[ran] * 1e3,
                where="post",
                color=colors[run.contender],
                label=label,
                alpha=0.85,
            )
            title = run.desc.removeprefix("vm_mod_fused_")
        panel.set_title(title if len(title) < 44 else f"{title[:41]}...", fontsize=9)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("seconds of the search")
        panel.set_ylabel("best latency (ms)")
        panel.grid(alpha=0.3, which="both")
    for panel in panels[len(tasks) :]:
        panel.set_axis_off()
    panels[0].legend(fontsize=8)
    FigureCanvasAgg(figure)  # no backend of the user's is touched
    with fresh_file(path) as fresh:
        figure.savefig(fresh, format="png", dpi=110)
