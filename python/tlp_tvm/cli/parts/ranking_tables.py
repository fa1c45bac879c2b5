"""Tables of how well models rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from tlp_tvm.cli.parts.common import console, print_table

if TYPE_CHECKING:
    from tlp_tvm.evaluation.few_shot.few_shot_run import FewShotRow
    from tlp_tvm.evaluation.side_by_side import ComparedRow, RankerComparison
    from tlp_tvm.metrics.bootstrap import Interval
    from tlp_tvm.metrics.over_seeds import OverSeeds


def print_card(metrics: dict[str, Any], out: object) -> None:
    """Print what a model's card says of its validation and test tasks, and where the model is."""
    for split in ("validation", "test"):
        if rows := metrics.get(split):
            print_table(ranking_table(rows, f"{split} tasks"))
    console.print(f"model and card: {out}")


def ranking_table(rows: Sequence[dict[str, Any]], title: str) -> Table:
    """Rows of `ranking_rows`, with those of a random pick."""
    table = Table(
        title=title,
        caption="all networks: as published; in brackets: 95% bootstrap interval over tasks; random: the "
        "mean of random picks (nine of ten of them between)",
    )
    ks = list(rows[0]["top"]) if rows else []
    for name in ("platform", "network"):
        table.add_column(name, overflow="fold")
    for name in ("tasks", *(f"top-{k}" for k in ks), *(f"random top-{k}" for k in ks), "Spearman"):
        table.add_column(name, justify="right")
    for i, row in enumerate(rows):
        chance = [row["random"][k] for k in ks]
        table.add_row(
            row["platform"],
            row["network"],
            str(row["tasks"]),
            *(f"{row['top'][k]:.3f}{_interval(row, k)}" for k in ks),
            *(f"{c['mean']:.3f} ({c['low']:.2f}-{c['high']:.2f})" for c in chance),
            f"{row['spearman']:.3f}",
            end_section=i + 1 == len(rows) or rows[i + 1]["platform"] != row["platform"],
        )
    return table


def _interval(row: dict[str, Any], k: str) -> str:
    """Empty for a model trained before there were intervals."""
    found = row.get("interval", {}).get(k)
    return f" ({found['low']:.2f}-{found['high']:.2f})" if found else ""


def print_comparison(comparison: RankerComparison, title: str, seeds: int) -> None:
    """Print a table per platform, and the notes."""
    for name in dict.fromkeys(row.platform for row in comparison.rows):
        print_table(_compared_table(comparison, name, f"{title}, {name}, {seeds} seeds"))
    for name, tasks in comparison.not_computable.items():
        for workload_key, why in tasks.items():
            console.print(f"{name}: not computable: {workload_key}: {why}", soft_wrap=True)
    for name, notes in comparison.notes.items():
        for note in notes:
            console.print(f"{name}: {note}", soft_wrap=True)


def _compared_table(comparison: RankerComparison, platform: str, title: str) -> Table:
    """The rows of a platform, and what could not be computed."""
    rows = [row for row in comparison.rows if row.platform == platform]
    caption = "all networks: as published; ± standard deviation over seeds (95% interval over tasks)"
    table = Table(title=title, caption=caption)
    tops = [f"top-{k}" for k in rows[0].top]
    for name in ("network", "tasks", "seen", "ranker", *tops, "Spearman", "Kendall", "pairs"):
        table.add_column(name, overflow="fold", justify="left" if name in ("network", "ranker") else "right")
    found = {(row.network, row.seen, row.ranker): row for row in rows}
    networks, counts = (dict.fromkeys(getattr(row, name) for row in rows) for name in ("network", "seen"))
    rankers = list(dict.fromkeys([row.ranker for row in comparison.rows] + list(comparison.not_computable)))
    for network in networks:
        for seen in counts:
            tasks = str(found[network, seen, rankers[0]].tasks)
            for ranker in rankers:
                row = found.get((network, seen, ranker))
                cells = spread_cells(row) if row else ["not computable"]
                table.add_row(network, tasks, str(seen), ranker, *cells, end_section=ranker == rankers[-1])
    return table


def spread_cells(row: ComparedRow | FewShotRow) -> list[str]:
    """Top-k, with its interval, and the rank measures of a row."""
    tops = [_with_spread(n) + _over_tasks(row.interval.get(k)) for k, n in row.top.items()]
    return [*tops, *(_with_spread(n) for n in (row.spearman, row.kendall, row.pairwise_accuracy))]


def _over_tasks(interval: Interval | None) -> str:
    return f" ({interval.low:.2f}-{interval.high:.2f})" if interval else ""


def _with_spread(number: OverSeeds) -> str:
    return f"{number.mean:.3f}" + (f" ± {number.deviation:.3f}" if number.deviation > 0 else "")
