"""Shared parts of the HTML pages: skeleton, style, cards, notes, figures and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


class Html(str):
    """HTML. Everything else on a page is text, and `html_of` escapes it."""

    __slots__ = ()


def html_of(value: object) -> Html:
    """HTML unchanged; anything else as escaped text."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def tag(name: str, *inner: object, **attributes: str) -> Html:
    """An element.

    Args:
        name: of the element.
        inner: HTML, or values that are shown as text.
        attributes: plain text; `kind` is written as `class`.
    """
    named = {"class" if key == "kind" else key: value for key, value in attributes.items() if value}
    said = "".join(f' {key}="{escape(value)}"' for key, value in named.items())
    return Html(f"<{name}{said}>{joined(inner)}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    """HTML and values, concatenated."""
    return Html("".join(map(html_of, parts)))


def lines(parts: Iterable[object]) -> Html:
    """HTML and values, one per line."""
    return Html("<br>".join(map(html_of, parts)))


def page(title: str, parts: Sequence[Html]) -> str:
    """A complete page.

    Args:
        title: of the window, plain text.
        parts: one after the other.
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{tag('title', title)}<style>{STYLE}</style></head>"
        f"<body>{tag('main', *parts)}</body></html>\n"
    )


def title(name: str, lead: str) -> Html:
    """The head of a page; both plain text."""
    return joined([tag("h1", name), tag("p", lead)])


def cards(numbers: Mapping[str, str]) -> Html:
    """Large numbers, each above its name; both plain text."""
    inner = [tag("div", tag("b", value), tag("span", label), kind="card") for label, value in numbers.items()]
    return tag("div", *inner, kind="cards")


def figures(pictures: Sequence[tuple[str, str, Html]], *, small: bool = False) -> Html:
    """Plots side by side.

    Args:
        pictures: title, caption and SVG of each; those without SVG are left out.
        small: three in a row instead of two.
    """
    inner = [tag("figure", tag("h3", name), tag("p", text), svg) for name, text, svg in pictures if svg]
    return tag("div", *inner, kind="plots small" if small else "plots") if inner else Html()


def notes(sentences: Sequence[str]) -> Html:
    """What a reader must know first, as plain text."""
    return joined(tag("p", sentence, kind="note") for sentence in sentences)


def dotted(colour: str, name: str) -> Html:
    """A name behind a dot in its colour."""
    return joined([tag("span", kind="dot", style=f"background:{colour}"), name])


def section(
    name: str, text: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, whole: bool = False
) -> Html:
    """A heading, a text and a table.

    Args:
        name: the heading, plain text.
        text: how to read the table, plain text.
        columns: names; ">" in front makes a column of numbers, "~" one that may wrap.
        rows: cells, one for each column: HTML, or values that are shown as text.
        whole: whether a long table extends the page instead of scrolling in a frame.
    """
    kinds = [{">": "n", "~": "wide"}.get(column[:1], "") for column in columns]
    heads = zip(kinds, columns, strict=True)
    head = tag("tr", *(tag("th", column.lstrip(">~"), kind=kind) for kind, column in heads))
    body = [
        tag("tr", *(tag("td", cell, kind=kind) for kind, cell in zip(kinds, row, strict=True)))
        for row in rows
    ]
    table = tag("table", tag("thead", head), tag("tbody", *body))
    return joined([heading(name, text), tag("div", table, kind="table whole" if whole else "table")])


def heading(name: str, text: str) -> Html:
    """A heading and a text, both plain."""
    return joined([tag("h2", name), tag("p", text)])


def filled(names: list[str], rows: list[list[object]]) -> tuple[list[str], list[list[object]]]:
    """A table without the columns that are empty in every row."""
    kept = [i for i in range(len(names)) if any(row[i] for row in rows)]
    return [names[i] for i in kept], [[row[i] for i in kept] for row in rows]


def facts(name: str, text: str, values: Mapping[str, object]) -> Html:
    """A table of names and values, both plain text; None and empty ones are left out."""
    rows = [[what, tag("code", value)] for what, value in flat(values).items() if value not in (None, "")]
    return section(name, text, ["what", "~value"], rows, whole=True)


def flat(values: Mapping[str, object], before: str = "") -> dict[str, object]:
    """Nested mappings as one: {"a": {"b": 1}} is {"a, b": 1}."""
    out: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            out |= flat(value, f"{before}{name}, ")
        else:
            out[f"{before}{name}"] = value
    return out
