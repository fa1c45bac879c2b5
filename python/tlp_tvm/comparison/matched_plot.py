"""A plot of comparisons: which share of a model's searches has matched the baseline, and by when."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tlp_tvm.comparison.against import speedup
from tlp_tvm.comparison.summary import Comparison
from tlp_tvm.files import fresh_file


def draw_matched(comparisons: Mapping[str, Comparison], path: Path) -> None:
    """Draw a panel per comparison, a line per model; searches that never matched keep a line below 1.

    Args:
        comparisons: title -> a comparison with a baseline.
        path: of the PNG.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    figure = Figure(figsize=(4.8 * len(comparisons), 3.4), layout="constrained")
    panels = figure.subplots(1, len(comparisons), squeeze=False, sharey=True)[0]
    for panel, (title, comparison) in zip(panels, comparisons.items(), strict=True):
        for i, (name, (times, shares)) in enumerate(matched_shares(comparison).items()):
            panel.step(times, shares, where="post", color=f"C{i}", label=name)
        panel.axvline(1, color="grey", linestyle=":", label=f"{comparison.baseline} itself")
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_ylim(0, 1.02)
        panel.set_title(title, fontsize=9)
        panel.set_xlabel(f"time / time until {comparison.baseline} first had its best")
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, loc="upper left")
    panels[0].set_ylabel("share of searches that have matched")
    FigureCanvasAgg(figure)  # no backend of the user's is touched
    with fresh_file(path) as fresh:
        figure.savefig(fresh, format="png", dpi=110)


def matched_shares(comparison: Comparison) -> dict[str, tuple[list[float], list[float]]]:
    """The lines: times relative to the baseline's, in order, and the share of searches matched by each.

    Returns:
        Contender -> its line. The last time is where the longest unmatched search ended, if one did not
        match.
    """
    runs = {(run.contender, run.task, run.seed): run for run in comparison.runs()}
    lines = {}
    for name in comparison.contenders:
        if name == comparison.baseline:
            continue
        matched, ends, count = [], [], 0
        for (contender, task, seed), run in runs.items():
            base = runs[comparison.baseline or "", task, seed]
            found = base.reached(float(base.best[-1]))
            if contender != name or found is None or not np.isfinite(base.best[-1]):
                continue
            count += 1
            ratio = speedup(run, base)
            if ratio is None:
                ends.append(float(run.clock[-1]) / found[1])
            else:
                matched.append(1 / ratio)
        times = sorted(matched)
        shares = [(i + 1) / count for i in range(len(times))]
        last = max([*ends, *times[-1:]], default=1.0)
        first = min([*times[:1], last])
        lines[name] = ([first, *times, last], [0.0, *shares, shares[-1] if shares else 0.0])
    return lines
