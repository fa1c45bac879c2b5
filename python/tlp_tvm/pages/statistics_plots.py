"""Plots of a dataset's statistics as SVG text."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tlp_tvm.dataset.statistics.counting import DatasetStatistics
from tlp_tvm.pages.page import Html
from tlp_tvm.pages.plots import colour, draw, percent, plain, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plots(statistics: DatasetStatistics) -> list[tuple[str, str, Html]]:
    """The plots of the page.

    Returns:
        Title, caption and SVG of each.
    """
    drawn = [
        ("How good are the programs?", _LABELS_TEXT, draw(partial(_labels, statistics))),
        ("How steady are the timings?", _NOISE_TEXT, draw(partial(_noise, statistics))),
        ("How long are the sequences?", _LENGTHS_TEXT, draw(partial(_lengths, statistics))),
        ("How far apart are the programs of a task?", _SPREAD_TEXT, draw(partial(_spread, statistics))),
    ]
    return [(title, text, svg) for title, text, svg in drawn if svg]


_LABELS_TEXT = (
    "Share of programs that reach at least this share of the best speed of their task. A steep fall on the "
    "left means that most programs are far from the best."
)
_NOISE_TEXT = "Standard deviation of the repeats of a measurement, divided by their mean."
_LENGTHS_TEXT = "Primitives per program; dashed lines show the length of each layout."
_SPREAD_TEXT = (
    "One point per task and platform: slowest / fastest program, against the latency of the fastest."
)


def _names(statistics: DatasetStatistics) -> list[str]:
    return [platform.name for platform in statistics.dataset.manifest.platforms]


def _labels(statistics: DatasetStatistics, axes: Axes) -> bool:
    some = False
    for p, name in enumerate(_names(statistics)):
        histogram = statistics.labels[p]
        if not len(histogram):
            continue
        some = True
        above = np.cumsum(histogram.counts[::-1])[::-1] / len(histogram)
        axes.step(
            histogram.edges[:-1], above, where="post", color=colour(p), label=short(name), linewidth=1.8
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("speed / best of the task")
    axes.set_ylabel("share of programs")
    axes.xaxis.set_major_formatter(percent)
    axes.yaxis.set_major_formatter(percent)
    if some:
        axes.legend(frameon=False)
    return some


def _noise(statistics: DatasetStatistics, axes: Axes) -> bool:
    some = False
    for p, name in enumerate(_names(statistics)):
        histogram = statistics.noise[p]
        if not len(histogram):
            continue
        some = True
        counts = histogram.counts.reshape(-1, 4).sum(1) / len(histogram)
        axes.step(
            histogram.edges[:-1:4], counts, where="post", color=colour(p), label=short(name), linewidth=1.8
        )
    axes.set_xscale("log")
    axes.set_xlim(1e-4, 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("spread of the repeats")
    axes.set_ylabel("share of measurements")
    axes.xaxis.set_major_formatter(percent)
    axes.yaxis.set_major_formatter(percent)
    if some:
        axes.legend(frameon=False)
    return some


def _lengths(statistics: DatasetStatistics, axes: Axes) -> bool:
    lengths = statistics.lengths
    if not lengths:
        return False
    axes.bar(list(lengths), list(lengths.values()), width=0.85, color="#8fb1ea")
    longest = max(lengths)
    for i, layout in enumerate(statistics.layouts):
        length = layout.layout.length
        on_right = length < longest * 0.75
        axes.axvline(length, color=colour(i + 1), linestyle="--", linewidth=1.2)
        axes.annotate(
            f"{layout.layout.name}: {length}",
            (length, 0.99 - 0.08 * i),
            xycoords=("data", "axes fraction"),
            color=colour(i + 1),
            xytext=(5 if on_right else -5, 0),
            textcoords="offset points",
            ha="left" if on_right else "right",
            va="top",
        )
    axes.set_xlabel("primitives per program")
    axes.set_ylabel("programs")
    return True


def _spread(statistics: DatasetStatistics, axes: Axes) -> bool:
    some = False
    for p, name in enumerate(_names(statistics)):
        rows = [task["platforms"][name] for task in statistics.tasks.values()]
        points = [(row["best_s"] * 1e3, row["worst_over_best"]) for row in rows if "best_s" in row]
        if not points:
            continue
        some = True
        x, y = zip(*points, strict=True)
        axes.scatter(x, y, s=16, alpha=0.65, color=colour(p), label=short(name), linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("fastest program of the task, ms")
    axes.set_ylabel("slowest / fastest")
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    if some:
        axes.legend(frameon=False)
    return some
