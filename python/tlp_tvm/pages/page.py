"""What the HTML pages share: skeleton, style, cards, notes, figures and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

STYLE = """
:root { color-scheme: light; --ink: #1b2430; --soft: #5b6776; --line: #e3e8ee; --page: #f5f7fa; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 Inter, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 28px; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 19px; margin: 44px 0 6px; }
h3 { font-size: 15px; margin: 0 0 2px; }
p { margin: 0 0 12px; color: var(--soft); max-width: 75ch; }
code { font: 12.5px ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 12px;
  margin: 24px 0; }
.card, figure, .table { background: #fff; border: 1px solid var(--line); border-radius: 10px; }
.card { padding: 14px 16px; }
.card b { display: block; font-size: 24px; font-weight: 600; letter-spacing: -0.02em; }
.card span { color: var(--soft); font-size: 13px; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 16px; }
figure { margin: 0; padding: 16px 18px 10px; }
figure p { font-size: 13px; min-height: 3em; }
figure svg { width: 100%; height: auto; display: block; }
.table { overflow: auto; max-height: 560px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th { position: sticky; top: 0; background: #fbfcfd; text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: 8px 12px; border-bottom: 1px solid var(--line); vertical-align: top; white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
small { color: var(--soft); font-size: 12px; }
td.wide { white-space: normal; min-width: 220px; word-break: break-word; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 7px; }
.plots.small { grid-template-columns: repeat(auto-fill, minmax(310px, 1fr)); }
.plots:not(.small) figure:only-child { max-width: 530px; }
.plots.small figure p { min-height: 0; }
.note { background: #fff8e8; border: 1px solid #f0dfb4; border-radius: 10px; padding: 10px 16px;
  margin: 12px 0 0; color: #6a5417; max-width: none; }
td b { font-weight: 600; }
.table.whole { max-height: none; }
.table + .plots { margin-top: 16px; }
@media print { .table { max-height: none; } figure { break-inside: avoid; } }
footer { margin-top: 40px; color: var(--soft); font-size: 12.5px; word-break: break-all; }
"""


def page(title: str, parts: Sequence[str]) -> str:
    """A whole page.

    Args:
        title: of the window, plain text.
        parts: HTML, one after the other.
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def cards(numbers: Mapping[str, str]) -> str:
    """Large numbers, each above its name; plain text both."""
    inner = "".join(
        f'<div class="card"><b>{escape(value)}</b><span>{escape(label)}</span></div>'
        for label, value in numbers.items()
    )
    return f'<div class="cards">{inner}</div>'


def figures(pictures: Sequence[tuple[str, str, str]], *, small: bool = False) -> str:
    """Pictures side by side.

    Args:
        pictures: title, one sentence on how to read it, and the SVG of each; those without SVG are left out.
        small: three in a row instead of two.
    """
    inner = "".join(
        f"<figure><h3>{escape(title)}</h3><p>{escape(text)}</p>{svg}</figure>"
        for title, text, svg in pictures
        if svg
    )
    return f'<div class="plots{" small" if small else ""}">{inner}</div>' if inner else ""


def notes(sentences: Sequence[str]) -> str:
    """What a reader must know first; plain text."""
    return "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in sentences)


def dotted(colour: str, name: str) -> str:
    """A name behind a dot of its colour in the pictures."""
    return f'<span class="dot" style="background:{colour}"></span>{escape(name)}'


def section(
    title: str, text: str, names: Sequence[str], rows: Sequence[Sequence[str]], *, whole: bool = False
) -> str:
    """A heading, a text and a table.

    Args:
        title: the heading, plain text.
        text: how to read the table, plain text.
        names: of the columns; ">" in front makes a column of numbers, "~" one that may wrap.
        rows: cells as HTML, one for each column.
        whole: whether a long table makes the page longer, rather than scroll in a frame of its own.
    """
    classes = {">": ' class="n"', "~": ' class="wide"'}
    head = "".join(f"<th{classes.get(name[:1], '')}>{escape(name.lstrip('>~'))}</th>" for name in names)
    kinds = [classes.get(name[:1], "") for name in names]
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in rows
    )
    frame = "table whole" if whole else "table"
    table = f'<div class="{frame}"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return heading(title, text) + table


def heading(title: str, text: str) -> str:
    """A heading and a text, plain text both."""
    return f"<h2>{escape(title)}</h2><p>{escape(text)}</p>"


def filled(names: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """A table without the columns that are empty in every row."""
    kept = [i for i in range(len(names)) if any(row[i] for row in rows)]
    return [names[i] for i in kept], [[row[i] for i in kept] for row in rows]


def facts(title: str, text: str, values: Mapping[str, object]) -> str:
    """A table of names and values, plain text both; None and empty ones are left out."""
    rows = [
        [escape(name), f"<code>{escape(str(value))}</code>"]
        for name, value in flat(values).items()
        if value not in (None, "")
    ]
    return section(title, text, ["what", "~value"], rows, whole=True)


def flat(values: Mapping[str, object], before: str = "") -> dict[str, object]:
    """Nested mappings as one: {"a": {"b": 1}} is {"a, b": 1}."""
    out: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            out |= flat(value, f"{before}{name}, ")
        else:
            out[f"{before}{name}"] = value
    return out
