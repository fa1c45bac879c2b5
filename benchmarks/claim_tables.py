"""A claim on a page: top-1 by both metrics in a table with a row a model, and a picture of the same.

The tables of the page behind have a row for all tasks of a model, one for the near and one for the far, each
with top-1 and top-5. What is here is made from their lines, so that the pages cannot differ.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from commits import ROOT
from marked_pages import put
from picks import HEADS, PARTS, part_of_page

from tlp_tvm.files import fresh_file

PAGES = ROOT / "docs"
TASKS, FIRST = HEADS[0], tuple(head for head in HEADS[1:] if head.endswith("-1"))
"""The column that says which tasks a row is of, and those of top-1, the published one first."""
WIDTH, ROW = 9.0, 0.27
"""Inches: of a picture, and of a model in it."""

_CELL = re.compile(r"([\d.]+)(?: ± [\d.]+)?(?: \(([\d.]+)-([\d.]+)\))?")


class Made(NamedTuple):
    """Tables of a page behind."""

    tables: Sequence[Sequence[str]]
    """The lines of each; they have no rows where nothing is kept."""
    commits: str
    """Of the code, in words; empty where nothing is kept."""


Rows = dict[tuple[str, ...], dict[str, dict[str, str]]]
"""By the cells that name a model: "all", "near" and "far" tasks, where there are any, with cells by head."""


def rows_of(lines: Sequence[str]) -> tuple[list[str], Rows]:
    """Read a table of a page behind.

    Args:
        lines: its heads, its ruler, its rows; rows without a column of tasks are of all.

    Returns:
        The heads of the cells that name a model, and the rows.
    """
    heads, _, *rest = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    names = [head for head in heads if head not in HEADS]
    rows: Rows = defaultdict(dict)
    for cells in rest:
        row = dict(zip(heads, cells, strict=True))
        part = row.get(TASKS, "all").split()[-1]
        rows[tuple(row[name] for name in names)][part] = row
    return names, dict(rows)


def claim_table(lines: Sequence[str]) -> list[str]:
    """A row a model: top-1 of all tasks, of the near and of the far, by one metric and by the other.

    Args:
        lines: of the table behind.
    """
    names, rows = rows_of(lines)
    parts = [part for part in PARTS if any(part in row for row in rows.values())]
    counted = any(TASKS in row["all"] for row in rows.values())
    heads = [*names, *([TASKS] if counted else [])]
    heads += [head if part == "all" else part for head in FIRST for part in parts]
    found = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, row in rows.items():
        cells = [row[part][head] if part in row else "" for head in FIRST for part in parts]
        found.append(f"| {' | '.join([*name, *([_counts(row)] if counted else []), *cells])} |")
    return found


def _counts(row: dict[str, dict[str, str]]) -> str:
    every, *apart = (cells[TASKS].removesuffix(" all") for cells in row.values())
    return f"{every} ({', '.join(apart)})" if apart else every


def claim(tables: Sequence[Sequence[str]], picture: Path, words: str) -> list[str]:
    """The lines of a page: the picture, which is drawn, and the tables.

    Args:
        tables: the lines of each, of the page behind.
        picture: in a folder beside the page.
        words: what the picture shows, for those who do not see it.
    """
    draw_claim(tables, picture)
    lines = [f"![{words}]({picture.relative_to(PAGES)})"]
    return [*lines, *(line for table in tables for line in ["", *claim_table(table)])]


def put_picks(mark: str, made: Made, kept: Path, words: str) -> None:
    """Write a cross-validation's tables: what is claimed on docs/results.md, all of it on the page behind.

    Args:
        mark: of both pages.
        made: the tables.
        kept: the file that they are made from; the picture is put beside it.
        words: what the picture shows.
    """
    lines = claim(made.tables, kept.with_suffix(".png"), words) if made.commits else []
    put(PAGES / "results.md", mark, part_of_page(lines, made.commits))
    put(PAGES / "results-more.md", mark, behind(made))


def behind(made: Made) -> str:
    """The part of docs/results-more.md."""
    return part_of_page([line for table in made.tables for line in ["", *table]][1:], made.commits)


def draw_claim(tables: Sequence[Sequence[str]], path: Path) -> None:
    """Draw a panel a metric, the published one first: top-1 with its interval over tasks, near and far apart.

    Args:
        tables: the lines of each, of the page behind.
        path: of the PNG.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = {
        label: row for table in tables for label, row in _labelled(table, told_apart=len(tables) > 1).items()
    }
    figure = Figure(figsize=(WIDTH, 1.0 + ROW * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(FIRST), sharey=True)
    for panel, head in zip(panels, FIRST, strict=True):
        _panel(panel, head, list(rows.values()))
    panels[0].set_yticks(range(len(rows)), list(rows), fontsize=8)
    panels[0].invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=2, fontsize=8)
    FigureCanvasAgg(figure)  # no backend of the user's is touched
    with fresh_file(path) as fresh:
        figure.savefig(fresh, format="png", dpi=100)


def _labelled(lines: Sequence[str], *, told_apart: bool) -> dict[str, dict[str, dict[str, str]]]:
    """A table's rows by what a picture calls them; cells that all have in common are left out.

    Args:
        lines: of the table.
        told_apart: from those of other tables, by the head of its first column.
    """
    names, rows = rows_of(lines)
    differ = [place for place in range(len(names)) if len(rows) == 1 or len({row[place] for row in rows}) > 1]
    first = names[:1] if told_apart else []
    return {": ".join([*first, *(name[place] for place in differ)]): row for name, row in rows.items()}


def _panel(panel: Any, head: str, rows: Sequence[dict[str, dict[str, str]]]) -> None:
    apart = [part for part in PARTS if part != "all" and any(part in row for row in rows)] or ["all"]
    for number, part in enumerate(apart):
        shift = 0.16 * (2 * number - len(apart) + 1)
        places = [place for place, row in enumerate(rows) if part in row]
        for place in places:
            _, low, high = _figures(rows[place][part][head])
            panel.hlines(place + shift, low, high, color=f"C{number}", linewidth=1.6, alpha=0.5)
        values = [_figures(rows[place][part][head])[0] for place in places]
        heights = [place + shift for place in places]
        panel.plot(values, heights, "o", color=f"C{number}", markersize=4, label=f"{part} tasks")
    panel.set_xlim(0, 1)
    panel.set_xlabel(head, fontsize=9)
    panel.grid(alpha=0.3)


def _figures(cell: str) -> tuple[float, float, float]:
    """A figure and its interval, which is itself where none was kept."""
    found = _CELL.fullmatch(cell)
    if found is None:
        raise ValueError(f"cell: expected a figure, with spread and interval or without, found {cell!r}")
    value, low, high = found.groups()
    return float(value), float(low or value), float(high or value)
