"""A plot of an evaluation: two rows of panels per platform, one panel per k of top-k."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tlp_tvm.evaluation.side_by_side import ComparedRow
from tlp_tvm.files import fresh_file
from tlp_tvm.metrics.ranked_groups import ALL_NETWORKS, MEAN_OVER_TASKS

METRICS = {ALL_NETWORKS: "weighted, as published", MEAN_OVER_TASKS: MEAN_OVER_TASKS}


def draw_rankers(rows: Sequence[ComparedRow], path: Path) -> None:
    """Draw bars, or lines against the number of programs seen where there are several.

    The published metric is above, the mean over tasks below it.

    Args:
        rows: of `compare_rankers`, at least one of them a mean over tasks.
        path: of the PNG.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [row for row in rows if row.network in METRICS]
    platforms, rankers, counts = (
        list(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("platform", "ranker", "seen")
    )
    ks = list(rows[0].top)
    lines = [(platform, metric) for platform in platforms for metric in METRICS]
    figure = Figure(figsize=(3.6 * len(ks), 3.0 * len(lines) + 0.4), layout="constrained")
    panels = figure.subplots(len(lines), len(ks), squeeze=False, sharey=True)
    for (platform, metric), line in zip(lines, panels, strict=True):
        for k, panel in zip(ks, line, strict=True):
            for i, ranker in enumerate(rankers):
                key = platform, metric, ranker
                found = [r for r in rows if (r.platform, r.network, r.ranker) == key]
                heights = [row.top[k].mean for row in found]
                deviations = [row.top[k].deviation for row in found]
                if len(counts) == 1:
                    panel.bar(
                        [i] * len(found), heights, yerr=deviations, color=f"C{i}", label=ranker, capsize=3
                    )
                else:
                    panel.errorbar(
                        [row.seen for row in found],
                        heights,
                        yerr=deviations,
                        color=f"C{i}",
                        label=ranker,
                        marker="o",
                        capsize=3,
                    )
            panel.set_title(f"{platform}, top-{k}", fontsize=9)
            panel.set_ylim(0, 1.02)
            panel.grid(alpha=0.3, axis="y")
            if len(counts) == 1:
                panel.set_xticks([])
            else:
                panel.set_xticks(counts)
                panel.set_xlabel("measured programs of the task seen before")
        line[0].set_ylabel(METRICS[metric])
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4), fontsize=8)
    FigureCanvasAgg(figure)  # no backend of the user's is touched
    with fresh_file(path) as fresh:
        figure.savefig(fresh, format="png", dpi=110)
