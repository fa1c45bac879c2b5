"""Accuracy against the number of labels, one line per recipe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tlp_tvm.evaluation.few_shot.few_shot_run import FewShot, FewShotRow
from tlp_tvm.evaluation.ranking_plot import METRICS
from tlp_tvm.evaluation.side_by_side import RANDOM
from tlp_tvm.files import fresh_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_few_shot(found: FewShot, path: Path) -> None:
    """Draw a panel for each k of top-k and one for Spearman; the published metric above the mean over tasks.

    Args:
        found: of `few_shot`.
        path: of the PNG.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ks = list(found.rows[0].top)
    figure = Figure(figsize=(3.8 * (len(ks) + 1), 3.4 * len(METRICS) + 0.4), layout="constrained")
    panels = figure.subplots(len(METRICS), len(ks) + 1, squeeze=False)
    for (metric, words), line in zip(METRICS.items(), panels, strict=True):
        _draw_metric(found, [row for row in found.rows if row.network == metric], line)
        line[0].set_ylabel(words)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6), fontsize=8)
    FigureCanvasAgg(figure)  # no backend of the user's is touched
    with fresh_file(path) as fresh:
        figure.savefig(fresh, format="png", dpi=110)


def _draw_metric(found: FewShot, rows: Sequence[FewShotRow], panels: Sequence[Axes]) -> None:
    """A line of panels."""
    chance = next(row for row in rows if row.recipe == RANDOM)
    lines = list(dict.fromkeys((row.recipe, row.choose) for row in rows if row is not chance))
    several = len({choose for _, choose in lines}) > 1
    for panel, k in zip(panels, [*chance.top, None], strict=True):
        for i, (recipe, choose) in enumerate(lines):
            chosen = [row for row in rows if (row.recipe, row.choose) == (recipe, choose)]
            numbers = [row.spearman if k is None else row.top[k] for row in chosen]
            panel.errorbar(
                [row.labels for row in chosen],
                [number.mean for number in numbers],
                yerr=[number.deviation for number in numbers],
                color=f"C{i}",
                label=f"{recipe}, {choose}" if several else recipe,
                marker="o",
                capsize=3,
            )
        if k is not None:
            panel.axhline(chance.top[k].mean, color="grey", linestyle=":", label="random pick")
        panel.set_xscale("symlog", linthresh=10)
        panel.set_xlim(left=-1)
        panel.set_title("Spearman" if k is None else f"top-{k}", fontsize=9)
        panel.set_xlabel(f"labels of {found.target}")
        panel.grid(alpha=0.3)
