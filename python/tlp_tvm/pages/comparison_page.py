"""A comparison of cost models as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm._core import __version__
from tlp_tvm.comparison.search_run import Run
from tlp_tvm.comparison.summary import RESULTS, Comparison, read_comparison
from tlp_tvm.errors import ComparisonError
from tlp_tvm.metrics.bootstrap import Interval
from tlp_tvm.pages.comparison_plots import curves, panels, total_spent
from tlp_tvm.pages.page import (
    Html,
    cards,
    dotted,
    facts,
    figures,
    heading,
    html_of,
    lines,
    notes,
    page,
    section,
    tag,
    title,
)
from tlp_tvm.pages.plots import colour

WHOLE = 16
"""Up to this many rows, the table of tasks does not scroll."""

_SETTINGS = ("contenders", "target", "cpu", "model", "trials")
_SPENT = (
    "Summed over all searches. Search: choosing programs, without scoring them. A comparison keeps latencies "
    "but no records: it shows how many programs failed, but neither reasons nor scores."
)
_PANELS = "Best latency against the search's own clock; one line per seed."


def comparison_page(folder: Path) -> str:
    """The page of a comparison.

    Args:
        folder: with comparison.json.

    Raises:
        ComparisonError: comparison.json is damaged.
    """
    comparison = read_comparison(folder)
    try:
        return _page(folder, comparison)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ComparisonError(
            f"{folder / RESULTS}: expected what a comparison writes, found {type(error).__name__}: {error}; "
            "compare again"
        ) from error


def _page(folder: Path, comparison: Comparison) -> str:
    content, runs = comparison.content, comparison.runs()
    networks = sorted({name for group in content["groups"] for name in group.get("networks", {})})
    name = ", ".join(networks) or folder.resolve().name
    lead = (
        f"The same searches under {', '.join(comparison.contenders)}, in turns on one machine, for "
        f"{content['target']}. A model's clock runs only in its own turns."
    )
    parts = [title(name, lead)]
    if runs:
        parts += [
            cards(_numbers(comparison, runs)),
            *_against(comparison),
            figures(curves(comparison, runs)),
            section(
                "Tasks",
                _tasks_sentence(comparison),
                *_tasks(comparison, runs),
                whole=len(content["groups"]) <= WHOLE,
            ),
            heading("Tasks against time", _PANELS),
            figures(panels(comparison, runs), small=True),
            section("Where the time went", _SPENT, *_spent(comparison, runs)),
        ]
    else:
        parts.append(notes(["No search is complete yet: the first task is still being compared."]))
    parts += [
        facts("Settings", f"From {RESULTS}.", {name: _text(content.get(name)) for name in _SETTINGS}),
        facts("Versions", "", {**content.get("versions", {}), "this page": f"tlp_tvm {__version__}"}),
        tag("footer", folder),
    ]
    return page(f"{name}: comparison", parts)


def _text(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _numbers(comparison: Comparison, runs: list[Run]) -> dict[str, str]:
    programs = sum(len(run.best) for run in runs)
    return {
        "tasks": f"{len({run.task for run in runs}):,}",
        "seeds": f"{len({run.seed for run in runs}):,}",
        "models": f"{len(comparison.contenders):,}",
        "searches": f"{len(runs):,}",
        "programs": f"{programs:,}",
        "failed": f"{sum(map(_failed, _sessions(comparison))):,}",
        "spent": f"{sum(sum(run.spent.values()) for run in runs) / 60:,.1f} min",
    }


def _sessions(comparison: Comparison, name: str | None = None) -> list[dict[str, Any]]:
    return [
        entry
        for group in comparison.content["groups"]
        for contender, entry in group["sessions"].items()
        if name in (None, contender)
    ]


def _failed(session: dict[str, Any]) -> int:
    return sum(latency is None for latency in session["latencies"])


def _against(comparison: Comparison) -> list[Html]:
    baseline, rows = comparison.baseline, comparison.against_baseline()
    if baseline is None:
        return [heading("Against TVM's own model", "xgb took no part, so there is no baseline.")]
    text = (
        f"Means are geometric, over tasks and seeds. Latency: best / {baseline}'s best; below 1 is faster. "
        f"Matched: searches that reached {baseline}'s best. Speedup, fewer: the time, and the programs, "
        f"until {baseline} first had its best / those needed to match it, over the matched searches. "
        "Speedup, all: an unmatched search counts as matched when the longer of the two ended. In brackets: "
        "95% bootstrap interval over tasks."
    )
    names = ["model", ">searches", ">latency", ">worst", ">matched", ">speedup", ">speedup, all", ">fewer"]
    cells: list[list[object]] = [
        [
            dotted(colour(comparison.contenders.index(row.contender)), row.contender),
            str(row.runs),
            _with_interval(row.latency, row.latency_interval, ".3f"),
            _ratio(row.slowest, ".3f"),
            f"{row.reached} of {row.runs}",
            _ratio(row.sooner, ".2f", "x"),
            _with_interval(row.sooner_all, row.sooner_all_interval, ".2f", "x"),
            _ratio(row.fewer, ".2f", "x"),
        ]
        for row in rows
    ]
    return [section(f"Against {baseline}", text, names, cells)]


def _ratio(value: float, form: str, unit: str = "") -> str:
    return f"{value:{form}}{unit}" if np.isfinite(value) else ""


def _with_interval(value: float, interval: Interval, form: str, unit: str = "") -> str:
    if not np.isfinite([value, interval.low, interval.high]).all():
        return _ratio(value, form, unit)
    return f"{value:{form}}{unit} ({interval.low:{form}} to {interval.high:{form}})"


def _tasks_sentence(comparison: Comparison) -> str:
    level = f", when it matched {comparison.baseline}" if comparison.baseline else ""
    return (
        "Final latency of the fastest program, timed beside those of the other models; the lowest of a row "
        "is bold. Below it: the first program that ran, GFLOP/s of the fastest"
        f"{level}, and failed programs. Share: of the time of all these tasks, with the best program of any "
        "model, weighted by how often the network has the task."
    )


def _tasks(comparison: Comparison, runs: list[Run]) -> tuple[list[str], list[list[object]]]:
    groups = comparison.content["groups"]
    names = ["~task", ">times", ">share", ">seed", *(f">{name}" for name in comparison.contenders)]
    found = {(run.task, run.seed, run.contender): run for run in runs}
    times: dict[str, float] = {}  # task -> seconds in its network
    for group in groups:
        best = min(found[group["task"], group["seed"], name].last for name in group["sessions"])
        times[group["task"]] = min(times.get(group["task"], np.inf), best * _weight(group))
    whole = sum(time for time in times.values() if np.isfinite(time)) or np.inf
    rows: list[list[object]] = []
    for group in sorted(groups, key=lambda group: (-times[group["task"]], group["task"], group["seed"])):
        mine = [found.get((group["task"], group["seed"], name)) for name in comparison.contenders]
        fastest = min(run.last for run in mine if run is not None)
        base = found.get((group["task"], group["seed"], comparison.baseline or ""))
        goal = float(base.best[-1]) if base is not None and len(base.best) else np.inf
        key = group.get("workload_key", group["task"])
        share = times[group["task"]] / whole
        rows.append(
            [
                lines([group["desc"].removeprefix("vm_mod_fused_"), tag("code", key)]),
                _weight(group),
                f"{share:.1%}" if np.isfinite(share) else "",
                group["seed"],
                *(
                    "" if run is None else _cell(run, group, fastest, goal, is_base=run is base)
                    for run in mine
                ),
            ]
        )
    return names, rows


def _weight(group: dict[str, Any]) -> int:
    return max(group.get("networks", {}).values(), default=1)


def _cell(run: Run, group: dict[str, Any], fastest: float, goal: float, *, is_base: bool) -> Html:
    best = run.last
    if not np.isfinite(best):
        return html_of("none ran")
    text = f"{best * 1e3:.4g} ms"
    told = [f"first {run.best[np.isfinite(run.best)][0] * 1e3:.3g} ms"]
    if "flop" in group:
        told.append(f"{group['flop'] / best / 1e9:.3g} GFLOP/s")
    reached = run.reached(goal)
    if reached is not None and np.isfinite(goal):
        told.append(f"{'reached' if is_base else 'matched'} at {reached[1]:.0f} s, program {reached[0]}")
    if failed := _failed(group["sessions"][run.contender]):
        told.append(f"{failed} failed")
    head = tag("b", text) if best == fastest else text
    return lines([head, *(tag("small", line) for line in told)])


def _spent(comparison: Comparison, runs: list[Run]) -> tuple[list[str], list[list[object]]]:
    totals = total_spent(comparison, runs)
    parts = list(dict.fromkeys(part for spent in totals.values() for part in spent))
    names = ["model", ">programs", ">failed", ">seconds", ">a program", *(f">{part}" for part in parts)]
    rows: list[list[object]] = []
    for i, name in enumerate(comparison.contenders):
        spent, sessions = totals[name], _sessions(comparison, name)
        whole, programs = sum(spent.values()), sum(len(entry["latencies"]) for entry in sessions)
        rows.append(
            [
                dotted(colour(i), name),
                f"{programs:,}",
                f"{sum(map(_failed, sessions)):,}",
                f"{whole:,.0f}",
                f"{whole / programs:.2f} s" if programs else "",
                *(_seconds(spent.get(part, 0), whole) for part in parts),
            ]
        )
    return names, rows


def _seconds(seconds: float, whole: float) -> Html:
    return lines([f"{seconds:,.0f} s", tag("small", f"{seconds / (whole or 1):.0%}")])
