"""Shared by all plots: style, colours, number formats, drawing as SVG text."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from tlp_tvm.pages.page import Html

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#2f6fde", "#e0723a", "#2a9d6f", "#a44fc1", "#c23b5a", "#6b7a8f", "#b59a1d")
"""Colours of series, in order."""

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
    "text.parse_math": False,  # names with a $ are names
}

LARGE, SMALL = (6.4, 3.5), (4.2, 3.1)
"""Sizes of a plot in inches: two and three in a row."""

WIDE, SPARSE = 4.0, 500.0
"""Highest / lowest value above which a scale is logarithmic, and above which it has few ticks."""


LONGEST_NAME = 33


def draw(picture: Callable[[Axes], bool], size: tuple[float, float] = LARGE) -> Html:
    """Draw a plot.

    Args:
        picture: draws, and returns whether there is anything to see.
        size: width and height in inches.

    Returns:
        The SVG; empty where there is nothing to see.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(cast(Any, _STYLE)):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        if not picture(axes):
            return Html()
        FigureCanvasSVG(figure)  # no backend of the user's is touched
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    return Html(text[text.index("<svg") :])


def short(name: str) -> str:
    """A name shortened to leave room for the plot."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."


def colour(i: int) -> str:
    """The i-th colour, cyclic."""
    return COLOURS[i % len(COLOURS)]


def fitting_scale(axes: Axes, which: Literal["x", "y"], low: float, high: float) -> None:
    """Set one scale: logarithmic with ticks at 1, 2 and 5 for a wide range of values, else linear.

    Args:
        axes: of the picture.
        which: of its two axes.
        low: the lowest value, above 0.
        high: the highest.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    if high / low > WIDE:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < SPARSE else (1,)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(plain)


def percent(value: float, _: float) -> str:
    """For an axis: 0.25 as 25%."""
    return f"{value * 100:g}%"


def plain(value: float, _: float) -> str:
    """For an axis: no powers of ten."""
    return f"{value:g}"


def bars(parts: Mapping[str, Mapping[str, float]], axes: Axes, *, legend: bool = True) -> bool:
    """Seconds as horizontal bars, stacked by part, with the sum behind each.

    Args:
        parts: bar to part to seconds; a part has the same colour in every bar.
        axes: to draw on.
        legend: whether the parts are named.
    """
    names = list(dict.fromkeys(part for bar in parts.values() for part in bar))
    ends = [0.0] * len(parts)
    for i, name in enumerate(names):
        widths = [bar.get(name, 0.0) for bar in parts.values()]
        axes.barh(
            [short(bar) for bar in parts],
            widths,
            left=list(ends),
            height=0.62,
            color=colour(i),
            label=short(name),
        )
        ends = [end + width for end, width in zip(ends, widths, strict=True)]
    whole = sum(ends)
    for place, end in enumerate(ends):
        share = f" ({end / whole:.0%})" if not legend and whole else ""
        axes.annotate(
            f"{end:,.3g} s{share}" if end < 1000 else f"{end:,.0f} s{share}",
            (end, place),
            (5, 0),
            textcoords="offset points",
            va="center",
            color="#4a5565",
        )
    axes.invert_yaxis()
    axes.grid(False)
    axes.grid(True, axis="x")
    axes.set_xlim(0, max(ends, default=0.0) * (1.25 if legend else 1.3) or 1)
    axes.set_xlabel("seconds")
    axes.xaxis.set_major_formatter(plain)
    if legend:
        axes.legend(
            frameon=False, ncols=len(names), loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9
        )
    return whole > 0
