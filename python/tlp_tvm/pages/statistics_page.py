"""Statistics of a dataset as one self-contained HTML page."""

from __future__ import annotations

from typing import Any

from tlp_tvm.dataset.statistics.counting import DatasetStatistics
from tlp_tvm.dataset.statistics.statistics_summary import summary_of
from tlp_tvm.pages.page import Html, cards, dotted, figures, lines, page, section, tag, title
from tlp_tvm.pages.plots import colour
from tlp_tvm.pages.statistics_plots import plots

TASKS_SHOWN = 500
"""A page with more is slow to open; the JSON has all."""


def statistics_page(statistics: DatasetStatistics) -> str:
    """The page: counts, plots, and tables of platforms, collisions, layouts, networks and tasks."""
    told = summary_of(statistics)
    name = statistics.dataset.path.name
    parts = [
        title(name, _split_sentence(told)),
        _cards(told),
        figures(plots(statistics)),
        section("Platforms", _PLATFORMS, *_platforms(told)),
        section("Collisions", _COLLISIONS, *_collision_rows(told)),
        section("Layouts", _LAYOUTS, *_layouts(told)),
        section("Networks", _NETWORKS, *_networks(told)),
        section("Tasks", _tasks_sentence(told), *_tasks(told)),
        tag("footer", f"digest {told['digest']}"),
    ]
    return page(f"{name}: dataset statistics", parts)


_PLATFORMS = (
    "Spread: slowest / fastest program of a task, median over tasks. Noise: standard deviation of the "
    "repeats of a measurement / their mean."
)
_COLLISIONS = (
    "Programs that a model cannot tell apart, as their input is equal. Ratio: slowest / fastest latency of "
    "such a group. Label gap: the range of speed / best of the task in it, which no model can resolve. "
    "Medians first."
)
_LAYOUTS = "What each layout cuts, and the shape that would hold 99.9% of the programs uncut."
_NETWORKS = (
    "A task counts for every network that has it. Programs per platform; below them spread and noise, "
    "medians over tasks."
)


def _tasks_sentence(told: dict[str, Any]) -> str:
    shown = min(TASKS_SHOWN, len(told["tasks"]))
    more = (
        f" Only the {shown} tasks with the most programs; the JSON has all."
        if shown < len(told["tasks"])
        else ""
    )
    return (
        "Best latency per platform; below it median / best, slowest / best, and the noise of the "
        f"repeats.{more}"
    )


def _split_sentence(told: dict[str, Any]) -> str:
    rest = {key.replace("_", " "): _text(value) for key, value in told["split"].items() if key != "rule"}
    details = ", ".join(f"{key} {value}" for key, value in rest.items())
    rule = {"keep": "as in its sources", "task": "by task", "family": "by network"}[told["split"]["rule"]]
    rule += f" ({details})" if details else ""
    sides = "; ".join(
        f"{split}: {counts['tasks']:,} tasks, {counts['programs']:,} programs"
        for split, counts in told["splits"].items()
    )
    return f"Split {rule}. {sides[:1].upper()}{sides[1:]}."


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cards(told: dict[str, Any]) -> Html:
    failed = sum(platform["failed"] for platform in told["platforms"])
    numbers = {
        "programs": told["programs"],
        "measurements": told["measurements"],
        "tasks": len(told["tasks"]),
        "networks": len(told["networks"]),
        "platforms": len(told["platforms"]),
        "failed": failed,
        "bad lines": sum(told["skipped"].values()),
    }
    return cards({label: f"{value:,}" for label, value in numbers.items()})


def _platforms(told: dict[str, Any]) -> tuple[list[str], list[list[object]]]:
    names = [
        "platform",
        "~target",
        ">tasks",
        ">programs",
        ">failed",
        "~failures",
        ">spread",
        ">noise",
        ">noise, 90%",
    ]
    rows: list[list[object]] = [
        [
            dotted(colour(i), p["name"]),
            tag("code", p["target"]),
            f"{p['tasks']:,}",
            f"{p['programs']:,}",
            f"{p['failed']:,}",
            ", ".join(f"{reason}: {count:,}" for reason, count in p["failures"].items()),
            f"{p['spread']['median']:.1f}x" if p["spread"] else "",
            f"{p['noise']['median']:.2%}" if p["noise"] else "",
            f"{p['noise']['p90']:.2%}" if p["noise"] else "",
        ]
        for i, p in enumerate(told["platforms"])
    ]
    return names, rows


def _collision_rows(told: dict[str, Any]) -> tuple[list[str], list[list[object]]]:
    names = ["equal", ">programs", ">distinct", ">groups", ">programs in groups"]
    names += [">ratio", ">90%", ">most", ">label gap", ">90%", ">most"]
    rows: list[list[object]] = []
    for entry in told["collisions"]:
        ratio, gap = entry["latency_ratio"], entry["label_gap"]
        share = entry["programs_in_groups"] / max(1, entry["programs"])
        rows.append(
            [
                entry["what"],
                f"{entry['programs']:,}",
                f"{entry['distinct']:,}",
                f"{entry['groups']:,}",
                f"{entry['programs_in_groups']:,} ({share:.2%})",
                *(f"{ratio[key]:.2f}x" if ratio else "" for key in ("median", "p90", "max")),
                *(f"{gap[key]:.3f}" if gap else "" for key in ("median", "p90", "max")),
            ]
        )
    return names, rows


def _layouts(told: dict[str, Any]) -> tuple[list[str], list[list[object]]]:
    names = ["layout", ">shape", ">programs cut", ">rows cut", ">values cut", "~unknown", ">would hold 99.9%"]
    rows: list[list[object]] = [
        [
            entry["layout"],
            f"{entry['length']} x {entry['width']}",
            f"{entry['cut_share']:.2%}",
            f"{entry['cut_rows']:,}",
            f"{entry['cut_columns']:,}",
            ", ".join(
                f"{name}: {count:,}"
                for name, count in (entry["unknown_kinds"] | entry["unknown_tokens"]).items()
            ),
            f"{entry['proposal']['length']} x {entry['proposal']['width']}",
        ]
        for entry in told["layouts"]
    ]
    return names, rows


def _networks(told: dict[str, Any]) -> tuple[list[str], list[list[object]]]:
    platforms = [platform["name"] for platform in told["platforms"]]
    names = [
        "network",
        "splits",
        ">tasks",
        ">programs",
        ">different steps",
        ">longest",
        *(f">{name}" for name in platforms),
    ]
    rows: list[list[object]] = [
        [
            entry["network"],
            ", ".join(entry["splits"]),
            f"{entry['tasks']:,}",
            f"{entry['programs']:,}",
            f"{entry['sequences']:,}",
            f"{entry['longest']:,}",
            *(_of_network(entry["platforms"][name]) for name in platforms),
        ]
        for entry in told["networks"]
    ]
    return names, rows


def _of_network(told: dict[str, Any]) -> Html:
    failed = f" ({told['failed']:,} failed)" if told["failed"] else ""
    parts: list[object] = [f"{told['programs']:,}{failed}"]
    if told["spread"] is not None:
        noise = f", {told['noise']:.1%}" if told["noise"] is not None else ""
        parts.append(tag("small", f"{told['spread']:.0f}x{noise}"))
    return lines(parts)


def _tasks(told: dict[str, Any]) -> tuple[list[str], list[list[object]]]:
    platforms = [platform["name"] for platform in told["platforms"]]
    names = ["~task", "split", "~networks", ">programs", ">steps", *(f">{name}" for name in platforms)]
    rows: list[list[object]] = [
        [
            lines([task["description"] or "", tag("code", task["workload_key"])]),
            task["split"],
            ", ".join(task["networks"]),
            f"{task['programs']:,}",
            f"{task['length']['median']:g}",
            *(_best(task["platforms"][name]) for name in platforms),
        ]
        for task in sorted(told["tasks"], key=lambda task: -task["programs"])[:TASKS_SHOWN]
    ]
    return names, rows


def _best(told: dict[str, Any]) -> object:
    if "best_s" not in told:
        return ""
    noise = f", {told['noise']:.1%}" if "noise" in told else ""
    ratios = f"{told['median_over_best']:.1f}x, {told['worst_over_best']:.0f}x{noise}"
    return lines([f"{told['best_s'] * 1e3:.4g} ms", tag("small", ratios)])
