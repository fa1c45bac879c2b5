"""Text that comes from a file stays text on every page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from test_report_page import write_comparison
from test_report_tuning import whole_run

from tlp_tvm.errors import RecordError, TlpTvmError
from tlp_tvm.pages import report_page
from tlp_tvm.pages.page import Html, cards, facts, figures, heading, html_of, notes, page, section, tag, title

EVIL = '</style></svg><img src=x onerror="document.title=1">&amp;$x_{$'


class Nodes(HTMLParser):
    """The elements of a page, and whether any of them would run something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")], attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value, of lists to the first one only, and to every key (ending in None)."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key, None)
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from leaves(value[0], (*path, 0))
    else:
        yield path


def changed(content: Any, path: tuple[Any, ...]) -> Any:
    """The content with markup at one place."""
    copy = json.loads(json.dumps(content))
    inner = copy
    is_key = path[-1] is None
    *way, last = path[:-1] if is_key else path
    for step in way:
        inner = inner[step]
    if is_key:
        inner[f"{EVIL}{last}"] = inner.pop(last)
    else:
        inner[last] = EVIL
    return copy


Places = list[tuple[Any, ...]]


def pages_of(folder: Path, name: str, at_once: int) -> Iterator[tuple[Places, str]]:
    """Pages of a run or comparison with markup at every place of its file; refused ones are not.

    So many places at once, as a page draws pictures, which takes most of a second.
    """
    content = json.loads((folder / name).read_text())

    def alter(places: Places) -> None:
        altered = content
        for place in sorted(places, key=lambda it: (it[-1] is None, -len(it))):  # keys last, inner first
            altered = changed(altered, place)
        (folder / name).write_text(json.dumps(altered))

    def shown(places: Places) -> Iterator[tuple[Places, str]]:
        alter(places)
        try:
            yield places, report_page(folder)
        except (TlpTvmError, RecordError):
            if len(places) > 1:
                half = len(places) // 2
                yield from shown(places[:half])
                yield from shown(places[half:])

    with pytest.MonkeyPatch.context() as patch:  # no pictures while it is found out which are refused
        patch.setattr("matplotlib.figure.Figure.savefig", lambda self, out, **_: out.write("<svg>"))
        taken = [place for place in leaves(content) for _ in shown([place])]
    apart = -(-len(taken) // at_once)  # neighbours are often names of one legend, which has room for few
    for first in range(apart):
        yield from shown(taken[first::apart])


def assert_text(pages: Iterator[tuple[Places, str]], least: int) -> None:
    """No page has the markup as an element, and more than so many places were on one."""
    shown = list(pages)
    assert [places for places, page in shown if "img" in Nodes(page).found] == []
    assert sum(len(places) for places, _ in shown) > least


def test_a_comparison_shows_markup_as_text(tmp_path: Path) -> None:
    assert_text(pages_of(write_comparison(tmp_path / "run"), "comparison.json", 2), 20)


def test_a_tuning_run_shows_markup_as_text(tmp_path: Path) -> None:
    assert_text(pages_of(whole_run(tmp_path / "run"), "run.json", 8), 40)


@pytest.mark.parametrize(
    "part",
    [
        title(EVIL, EVIL),
        heading(EVIL, EVIL),
        cards({EVIL: EVIL}),
        figures([(EVIL, EVIL, tag("svg"))]),
        notes([EVIL]),
        facts(EVIL, EVIL, {EVIL: {EVIL: EVIL}}),
        section(EVIL, EVIL, [EVIL], [[EVIL]]),
        tag("p", EVIL, kind=EVIL),
    ],
)
def test_every_part_of_a_page_takes_text(part: Html) -> None:
    nodes = Nodes(page(EVIL, [part]))
    assert "img" not in nodes.found
    assert EVIL in nodes.text


def test_html_is_taken_as_it_is() -> None:
    assert html_of(tag("b", "<")) == "<b>&lt;</b>"
    assert html_of(3) == "3"
