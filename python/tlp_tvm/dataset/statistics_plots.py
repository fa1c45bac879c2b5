"""Statistics of a dataset as pictures, SVG in text."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tlp_tvm.dataset.statistics import DatasetStatistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#2f6fde", "#e0723a", "#2a9d6f", "#a44fc1", "#c23b5a", "#6b7a8f", "#b59a1d")
"""Of platforms, in their order."""

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tlp-tvm",
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "Segoe UI", "Helvetica Neue", "Arial", "DejaVu Sans"],
    "font.size": 10,
    "axes.edgecolor": "#c5ccd6",
    "axes.labelcolor": "#4a5565",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "#4a5565",
    "ytick.color": "#4a5565",
    "grid.color": "#e8ecf1",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
}


def plots(statistics: DatasetStatistics) -> list[tuple[str, str, str]]:
    """The pictures of the page.

    Returns:
        Title, one sentence on how to read it, and the SVG of each.
    """
    drawn = [
        ("How good are the programs?", _LABELS_TEXT, _draw(_labels, statistics)),
        ("How steady are the timings?", _NOISE_TEXT, _draw(_noise, statistics)),
        ("How long are the sequences?", _LENGTHS_TEXT, _draw(_lengths, statistics)),
        ("How far apart are the programs of a task?", _SPREAD_TEXT, _draw(_spread, statistics)),
    ]
    return [(title, text, svg) for title, text, svg in drawn if svg]


_LABELS_TEXT = (
    "Share of programs whose speed is at least this part of the best known program of their task. A line "
    "that falls steeply on the left means that most programs are far from the best."
)
_NOISE_TEXT = "Standard deviation over the repeats of a measurement, divided by their mean."
_LENGTHS_TEXT = "Primitives a program; the dashed lines are what each layout holds."
_SPREAD_TEXT = "A point a task and platform: its slowest program against its fastest, by the latency of that."


def _draw(picture: Callable[[Axes, DatasetStatistics], bool], statistics: DatasetStatistics) -> str:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(cast(Any, _STYLE)):
        figure = Figure(figsize=(6.4, 3.5), layout="constrained")
        axes = figure.subplots()
        if not picture(axes, statistics):
            return ""
        FigureCanvasSVG(figure)  # no backend of the user's is touched
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _names(statistics: DatasetStatistics) -> list[str]:
    return [platform.name for platform in statistics.dataset.manifest.platforms]


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def _labels(axes: Axes, statistics: DatasetStatistics) -> bool:
    some = False
    for p, name in enumerate(_names(statistics)):
        histogram = statistics.labels[p]
        if not len(histogram):
            continue
        some = True
        above = np.cumsum(histogram.counts[::-1])[::-1] / len(histogram)
        axes.step(histogram.edges[:-1], above, where="post", color=_colour(p), label=name, linewidth=1.8)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("speed / best of the task")
    axes.set_ylabel("share of programs")
    axes.xaxis.set_major_formatter(_percent)
    axes.yaxis.set_major_formatter(_percent)
    if some:
        axes.legend(frameon=False)
    return some


def _noise(axes: Axes, statistics: DatasetStatistics) -> bool:
    some = False
    for p, name in enumerate(_names(statistics)):
        histogram = statistics.noise[p]
        if not len(histogram):
            continue
        some = True
        counts = histogram.counts.reshape(-1, 4).sum(1) / len(histogram)
        axes.step(histogram.edges[:-1:4], counts, where="post", color=_colour(p), label=name, linewidth=1.8)
    axes.set_xscale("log")
    axes.set_xlim(1e-4, 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("spread of the repeats")
    axes.set_ylabel("share of measurements")
    axes.xaxis.set_major_formatter(_percent)
    axes.yaxis.set_major_formatter(_percent)
    if some:
        axes.legend(frameon=False)
    return some


def _lengths(axes: Axes, statistics: DatasetStatistics) -> bool:
    lengths = statistics.lengths
    if not lengths:
        return False
    axes.bar(list(lengths), list(lengths.values()), width=0.85, color="#8fb1ea")
    longest = max(lengths)
    for i, layout in enumerate(statistics.layouts):
        length = layout.layout.length
        on_right = length < longest * 0.75
        axes.axvline(length, color=_colour(i + 1), linestyle="--", linewidth=1.2)
        axes.annotate(
            f"{layout.layout.name}: {length}",
            (length, 0.99 - 0.08 * i),
            xycoords=("data", "axes fraction"),
            color=_colour(i + 1),
            xytext=(5 if on_right else -5, 0),
            textcoords="offset points",
            ha="left" if on_right else "right",
            va="top",
        )
    axes.set_xlabel("primitives a program")
    axes.set_ylabel("programs")
    return True


def _spread(axes: Axes, statistics: DatasetStatistics) -> bool:
    some = False
    for p, name in enumerate(_names(statistics)):
        rows = [task["platforms"][name] for task in statistics.tasks.values()]
        points = [(row["best_s"] * 1e3, row["worst_over_best"]) for row in rows if "best_s" in row]
        if not points:
            continue
        some = True
        x, y = zip(*points, strict=True)
        axes.scatter(x, y, s=16, alpha=0.65, color=_colour(p), label=name, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("fastest program of the task, ms")
    axes.set_ylabel("slowest / fastest")
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    if some:
        axes.legend(frameon=False)
    return some


def _percent(value: float, _: float) -> str:
    return f"{value * 100:g}%"


def _plain(value: float, _: float) -> str:
    return f"{value:g}"
