"""Statistics of a dataset per platform, network and task, as a dictionary for tables, JSON and the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlp_tvm.dataset.statistics.collisions import collisions
from tlp_tvm.dataset.statistics.counting import DatasetStatistics
from tlp_tvm.dataset.statistics.layout_fit import LayoutStatistics


def summary_of(statistics: DatasetStatistics) -> dict[str, Any]:
    """All statistics, ready for JSON.

    Returns:
        dataset, digest, framework, programs, measurements, split, splits, skipped, notes; a list each of
        platforms, networks, tasks, collisions and layouts; lengths (primitives -> programs).
    """
    manifest = statistics.dataset.manifest
    tasks = [statistics.tasks[number] for number in sorted(statistics.tasks)]
    return {
        "dataset": str(statistics.dataset.path),
        "digest": statistics.dataset.digest,
        "framework": manifest.framework,
        "programs": manifest.programs,
        "measurements": manifest.measurements,
        "tasks_without_programs": len(manifest.tasks) - len(tasks),
        "split": manifest.split,
        "splits": _by_split(tasks),
        "skipped": manifest.skipped,
        "notes": manifest.notes,
        "platforms": [_platform(statistics, p, tasks) for p in range(len(manifest.platforms))],
        "networks": _networks(statistics),
        "tasks": tasks,
        "collisions": _collisions(statistics),
        "lengths": {str(length): count for length, count in statistics.lengths.items()},
        "layouts": [_layout(counted) for counted in statistics.layouts],
    }


def _platform(statistics: DatasetStatistics, p: int, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    entry = statistics.dataset.manifest.platforms[p]
    rows = [task["platforms"][entry.name] for task in tasks]
    spreads = [row["worst_over_best"] for row in rows if "best_s" in row]
    noise, labels = statistics.noise[p], statistics.labels[p]
    return {
        "name": entry.name,
        "target": entry.target,
        "measurements": entry.measurements,
        "tasks": sum(row["programs"] > 0 for row in rows),
        "programs": sum(row["programs"] for row in rows),
        "failed": sum(row["failed"] for row in rows),
        "failures": dict(sorted(statistics.failures[p].items())),
        "spread": {"median": float(np.median(spreads)), "max": max(spreads)} if spreads else None,
        "label": {"median": labels.quantile(0.5)} if len(labels) else None,
        "noise": {"median": noise.quantile(0.5), "p90": noise.quantile(0.9)} if len(noise) else None,
    }


def _networks(statistics: DatasetStatistics) -> list[dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    task_of = _joined(statistics.task_of, np.empty(0, np.int32))
    keys = _joined(statistics.hashes, np.empty(0, np.uint64))
    members: dict[str, list[int]] = {}
    for number, task in statistics.tasks.items():
        for network in task["networks"]:
            members.setdefault(network, []).append(number)
    for network, numbers in sorted(members.items()):
        has = np.zeros(len(statistics.dataset.manifest.tasks), bool)
        has[numbers] = True
        tasks = [statistics.tasks[number] for number in numbers]
        out[network] = {
            "network": network,
            "tasks": len(tasks),
            "splits": _by_split(tasks),
            "programs": sum(task["programs"] for task in tasks),
            "sequences": len(np.unique(keys[has[task_of]])),
            "embeddings": {name: sum(task["embeddings"][name] for task in tasks) for name in statistics.seen},
            "cut": {name: sum(task["cut"][name] for task in tasks) for name in statistics.seen},
            "longest": max(task["length"]["max"] for task in tasks),
            "platforms": {
                platform.name: _of_tasks([task["platforms"][platform.name] for task in tasks])
                for platform in statistics.dataset.manifest.platforms
            },
        }
    return list(out.values())


def _collisions(statistics: DatasetStatistics) -> list[dict[str, Any]]:
    empty = np.empty((0, len(statistics.failures)), np.float32)
    latencies, labels = _joined(statistics.latencies, empty), _joined(statistics.relative, empty)
    tasks = _joined(statistics.task_of, np.empty(0, np.int32)).astype(np.uint64)
    across = _joined(statistics.hashes, np.empty(0, np.uint64))
    out = [{"what": "steps, across tasks", **collisions(across[:, None], latencies, labels)}]
    within = np.stack([across, tasks], axis=1)
    out.append({"what": "steps, within a task", **collisions(within, latencies, labels)})
    for name, parts in statistics.seen.items():
        seen = np.stack([_joined(parts, across), tasks], axis=1)
        what = f"embedding {name}, within a task"
        out.append({"what": what, **collisions(seen, latencies, labels)})
    return out


def _joined(parts: list[Any], empty: Any) -> Any:
    return np.concatenate(parts) if parts else empty


def _of_tasks(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A platform's statistics over several tasks."""
    failures: dict[str, int] = {}
    for row in rows:
        for reason, count in row.get("failures", {}).items():
            failures[reason] = failures.get(reason, 0) + count
    return {
        "programs": sum(row["programs"] for row in rows),
        "failed": sum(row["failed"] for row in rows),
        "failures": failures,
        "spread": _median([row["worst_over_best"] for row in rows if "best_s" in row]),
        "noise": _median([row["noise"] for row in rows if "noise" in row]),
    }


def _median(values: list[float]) -> float | None:
    return float(np.median(values)) if values else None


def _by_split(tasks: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for task in tasks:
        counts = out.setdefault(task["split"], {"tasks": 0, "programs": 0})
        counts["tasks"] += 1
        counts["programs"] += task["programs"]
    return dict(sorted(out.items()))


def _layout(counted: LayoutStatistics) -> dict[str, Any]:
    report = counted.report
    length, width = counted.proposal()
    return {
        "layout": counted.layout.name,
        "length": counted.layout.length,
        "width": counted.layout.width,
        "cut_share": counted.cut_share,
        "cut_rows": report.cut_rows,
        "cut_columns": report.cut_columns,
        "unknown_kinds": report.unknown_kinds,
        "unknown_tokens": report.unknown_tokens,
        "proposal": {"length": length, "width": width},
    }
