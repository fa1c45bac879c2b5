"""Plots of a comparison as SVG text."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.comparison.against import speedup
from tlp_tvm.comparison.search_run import Run
from tlp_tvm.comparison.summary import Comparison
from tlp_tvm.pages.page import Html
from tlp_tvm.pages.plots import SMALL, bars, colour, draw, fitting_scale, percent, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = 24
"""Tasks with a plot of their own; the table has all."""

_STEPS = 200

_PROGRAMS = (
    "Best final latency of any model / best so far, mean over tasks and seeds; 0 before the first program "
    "that ran."
)
_SECONDS = "The same against each search's own clock; a finished search keeps its best."
_LEVEL = (
    "One point per search: time until {0} first had its best / time until this model matched it. A cross on "
    "the left marks a search that never did."
)
_SPENT = "Seconds of all searches of a model. Search: choosing programs, without scoring them."


def curves(comparison: Comparison, runs: list[Run]) -> list[tuple[str, str, Html]]:
    """All searches together.

    Returns:
        Title, caption and SVG of each; an empty SVG where there is nothing to draw.
    """
    names, baseline = comparison.contenders, comparison.baseline
    level = draw(partial(_level, names, baseline, runs)) if baseline else Html()
    return [
        ("Against programs measured", _PROGRAMS, draw(partial(_together, names, runs, False))),
        ("Against time", _SECONDS, draw(partial(_together, names, runs, True))),
        (f"Speedup to match {baseline}", _LEVEL.format(baseline), level),
        ("Where the time went", _SPENT, draw(partial(bars, total_spent(comparison, runs)))),
    ]


def panels(comparison: Comparison, runs: list[Run]) -> list[tuple[str, str, Html]]:
    """One plot per task, as `curves`."""
    tasks = list(dict.fromkeys(run.task for run in runs))[:PANELS]
    pictures = []
    for task in tasks:
        mine = [run for run in runs if run.task == task]
        seeds = len({run.seed for run in mine})
        text = f"{seeds} seeds" if seeds > 1 else ""
        svg = draw(partial(_panel, comparison.contenders, mine), SMALL)
        pictures.append((mine[0].desc.removeprefix("vm_mod_fused_"), text, svg))
    return pictures


def total_spent(comparison: Comparison, runs: list[Run]) -> dict[str, dict[str, float]]:
    """Model to part to seconds, summed over its searches."""
    totals: dict[str, dict[str, float]] = {name: {} for name in comparison.contenders}
    for run in runs:
        for part, seconds in run.spent.items():
            totals[run.contender][part] = totals[run.contender].get(part, 0.0) + seconds
    return totals


def _together(names: tuple[str, ...], runs: list[Run], on_clock: bool, axes: Axes) -> bool:
    goals: dict[tuple[str, int], float] = {}
    for run in runs:
        key = run.task, run.seed
        goals[key] = min([goals.get(key, np.inf), *run.best[-1:]])
    end = max(
        (float(run.clock[-1]) if on_clock else len(run.best) for run in runs if len(run.best)), default=0
    )
    x = np.linspace(0, end, _STEPS + 1) if on_clock else np.arange(end + 1)
    lowest = 1.0
    for i, name in enumerate(names):
        goal_of = [(goals[run.task, run.seed], run) for run in runs if run.contender == name]
        shares = [goal / _best_at(run, x, on_clock) for goal, run in goal_of if np.isfinite(goal)]
        if not shares:
            continue
        y = np.mean(shares, axis=0)
        axes.step(x, y, where="post", color=colour(i), label=short(name), linewidth=1.8)
        lowest = min(lowest, float(y[len(y) // 8]))
    if not axes.lines:
        return False
    axes.set_ylim(min(0.9, np.floor(lowest * 10) / 10), 1.0 + 0.03 * (1 - min(0.9, lowest)) + 0.002)
    axes.set_xlim(0, end)
    axes.yaxis.set_major_formatter(percent)
    axes.set_xlabel("seconds of the search" if on_clock else "programs measured")
    axes.set_ylabel("speed / best of all")
    axes.legend(frameon=False, ncols=len(names), loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    return True


def _level(names: tuple[str, ...], baseline: str, runs: list[Run], axes: Axes) -> bool:
    base = {(run.task, run.seed): run for run in runs if run.contender == baseline and len(run.best)}
    others = [name for name in names if name != baseline]
    low, high = 1.0, 1.0
    for place, name in enumerate(others):
        mine = [
            run for run in runs if run.contender == name and (run.task, run.seed) in base and len(run.best)
        ]
        for i, run in enumerate(mine):
            against = base[run.task, run.seed]
            sooner = speedup(run, against)
            if not np.isfinite(against.best[-1]):
                continue
            y = place + 0.5 * ((i + 0.5) / len(mine) - 0.5)
            tint = colour(names.index(name))
            if sooner is None:
                on_edge = axes.get_yaxis_transform()
                axes.plot(0.015, y, "x", color=tint, alpha=0.8, markersize=6, transform=on_edge)
                continue
            low, high = min(low, sooner), max(high, sooner)
            axes.plot(sooner, y, "o", color=tint, alpha=0.8, markersize=6)
    if not axes.lines:
        return False
    axes.axvline(1, color="#c5ccd6", linewidth=1)
    fitting_scale(axes, "x", low, high)
    if axes.get_xscale() == "log":
        axes.set_xlim(low / (high / low) ** 0.1, high * (high / low) ** 0.06)
    else:
        axes.set_xlim(low - 0.15 * max(high - low, 0.2), high + 0.1 * max(high - low, 0.2))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.grid(False)
    axes.grid(True, axis="x")
    axes.set_yticks(range(len(others)), [short(name) for name in others])
    axes.set_ylim(len(others) - 0.5, -0.5)
    axes.set_xlabel(f"speedup over {short(baseline)}")
    return True


def _best_at(run: Run, x: NDArray[np.float64], on_clock: bool) -> NDArray[np.float64]:
    """Best latency at each x; infinity before the first program that ran."""
    ends = run.clock if on_clock else np.arange(1, len(run.best) + 1)
    measured = np.searchsorted(ends, x, side="right")
    return np.concatenate([[np.inf], run.best])[measured]


def _panel(names: tuple[str, ...], runs: list[Run], axes: Axes) -> bool:
    low, high = np.inf, 0.0
    named: set[str] = set()
    for run in runs:
        ran = np.isfinite(run.best)
        if not ran.any():
            continue
        y = run.best[ran] * 1e3
        low, high = min(low, float(y.min())), max(high, float(y.max()))
        axes.step(
            run.clock[ran],
            y,
            where="post",
            color=colour(names.index(run.contender)),
            label=None if run.contender in named else short(run.contender),
            linewidth=1.5,
            alpha=0.85,
        )
        named.add(run.contender)
    if not named:
        return False
    fitting_scale(axes, "y", low, high)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds of the search")
    axes.set_ylabel("best latency, ms")
    axes.legend(frameon=False, fontsize=8)
    return True
