"""Statistics of a dataset as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table


def statistics_tables(told: dict[str, Any], tasks: int) -> Iterator[Table]:
    """Tables of platforms, collisions, layouts, networks and tasks.

    Args:
        told: `statistics_summary.summary_of`.
        tasks: how many tasks to show, those with the most programs first.
    """
    yield _platforms(told)
    yield _collisions(told)
    yield _layouts(told)
    yield _networks(told)
    if tasks:
        yield _tasks(told, tasks)


def _table(title: str, left: list[str], right: list[str], caption: str | None = None) -> Table:
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right")
    return table


def _platforms(told: dict[str, Any]) -> Table:
    title = (
        f"{told['dataset']}: {told['programs']:,} programs, {told['measurements']:,} measurements, "
        f"{len(told['tasks']):,} tasks"
    )
    caption = "spread: slowest / fastest of a task, median over tasks; noise: of the repeats, median (90%)"
    table = _table(title, ["platform"], ["tasks", "programs", "failed", "spread", "noise"], caption)
    for p in told["platforms"]:
        failures = "; ".join(f"{reason}: {count:,}" for reason, count in p["failures"].items())
        table.add_row(
            p["name"],
            f"{p['tasks']:,}",
            f"{p['programs']:,}",
            f"{p['failed']:,}" + (f" ({failures})" if failures else ""),
            f"{p['spread']['median']:.1f}x" if p["spread"] else "",
            f"{p['noise']['median']:.2%} ({p['noise']['p90']:.2%})" if p["noise"] else "",
        )
    return table


def _collisions(told: dict[str, Any]) -> Table:
    caption = (
        "groups of programs whose input is equal; ratio: slowest / fastest of a group; gap: between the "
        "highest and lowest speed / best of the task; medians (most)"
    )
    right = ["programs", "distinct", "in groups", "groups", "ratio", "gap"]
    table = _table("Programs that a model cannot tell apart", ["equal"], right, caption)
    for entry in told["collisions"]:
        ratio, gap = entry["latency_ratio"], entry["label_gap"]
        table.add_row(
            entry["what"],
            f"{entry['programs']:,}",
            f"{entry['distinct']:,}",
            f"{entry['programs_in_groups']:,}",
            f"{entry['groups']:,}",
            f"{ratio['median']:.2f}x ({ratio['max']:.2f}x)" if ratio else "",
            f"{gap['median']:.3f} ({gap['max']:.3f})" if gap else "",
        )
    return table


def _layouts(told: dict[str, Any]) -> Table:
    lengths = [(int(length), count) for length, count in told["lengths"].items()]
    mean = sum(length * count for length, count in lengths) / max(1, told["programs"])
    caption = (
        f"primitives a program: {mean:.1f} on average, {max(n for n, _ in lengths) if lengths else 0} at most"
    )
    right = ["shape", "programs cut", "rows cut", "values cut", "unknown", "would hold 99.9%"]
    table = _table("Layouts", ["layout"], right, caption)
    for entry in told["layouts"]:
        table.add_row(
            entry["layout"],
            f"{entry['length']} x {entry['width']}",
            f"{entry['cut_share']:.2%}",
            f"{entry['cut_rows']:,}",
            f"{entry['cut_columns']:,}",
            f"{sum((entry['unknown_kinds'] | entry['unknown_tokens']).values()):,}",
            f"{entry['proposal']['length']} x {entry['proposal']['width']}",
        )
    return table


def _networks(told: dict[str, Any]) -> Table:
    table = _table("Networks", ["network", "splits"], ["tasks", "programs", "different steps", "failed"])
    for entry in told["networks"]:
        table.add_row(
            entry["network"],
            ", ".join(entry["splits"]),
            f"{entry['tasks']:,}",
            f"{entry['programs']:,}",
            f"{entry['sequences']:,}",
            f"{sum(counts['failed'] for counts in entry['platforms'].values()):,}",
        )
    return table


def _tasks(told: dict[str, Any], count: int) -> Table:
    shown = sorted(told["tasks"], key=lambda task: -task["programs"])[:count]
    title = f"Tasks ({len(shown):,} of {len(told['tasks']):,})"
    platforms = [platform["name"] for platform in told["platforms"]]
    caption = "on each platform: fastest program (median / fastest)"
    table = _table(title, ["task", "split"], ["programs", "steps", *platforms], caption)
    for task in shown:
        best = [task["platforms"][name] for name in platforms]
        table.add_row(
            task["description"] or task["workload_key"],
            task["split"],
            f"{task['programs']:,}",
            f"{task['length']['median']:g}",
            *(_best(b) for b in best),
        )
    return table


def _best(told: dict[str, Any]) -> str:
    if "best_s" not in told:
        return ""
    unit, factor = ("us", 1e6) if told["best_s"] < 1e-3 else ("ms", 1e3)
    return f"{told['best_s'] * factor:.3g} {unit} ({told['median_over_best']:.1f}x)"
