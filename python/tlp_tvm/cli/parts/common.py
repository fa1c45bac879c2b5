"""Shared by all commands: consoles, common options, errors as one sentence."""

from __future__ import annotations

import errno
import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.text import Text

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from tlp_tvm.layout import FeatureLayout

P = ParamSpec("P")
R = TypeVar("R")

console = Console(markup=False, highlight=False, emoji=False)
"""Results. Strings are plain text, brackets included; bold text is a `rich.text.Text`."""

progress_console = Console(stderr=True, markup=False, highlight=False, emoji=False)
"""Progress and errors, so that standard output stays clean."""

_UNBOUNDED = 10_000
_NAME = 10
"""Columns that a name keeps in a narrow terminal; without it rich leaves none."""

FLAGS = {"contenders": "--models", "fleet": "--tracker", "shapes": "--shape"}
"""Fields of the library whose options are not called like them."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

FrameworkOption = Annotated[str, typer.Option("--framework", help="Search framework: ansor or metaschedule.")]


def framework_of(name: str) -> str:
    """The name, if there is such a framework.

    Raises:
        BadParameter: there is none.
    """
    from tlp_tvm.framework import FRAMEWORKS

    return one_of("--framework", name, list(FRAMEWORKS))


def with_flags(sentence: str) -> str:
    """A sentence of the library, its fields (`programs_from`) as options (--programs-from)."""

    def flag(field: re.Match[str]) -> str:
        return FLAGS.get(field[1], "--" + field[1].replace("_", "-"))

    return re.sub("`([a-z_]+)`", flag, sentence)


def files_of_networks(folders: Iterable[Path]) -> dict[str, str]:
    """Name -> file of the networks in folders."""
    return {file.stem: str(file) for folder in folders for file in sorted(folder.iterdir())}


def print_json(value: Any) -> None:
    """Write `value` as one line of JSON to standard output."""
    typer.echo(json.dumps(value))


def print_table(table: Table) -> None:
    """Print a table without cutting its figures.

    Names wrap; if that is not enough, the table becomes wider than the terminal.

    Args:
        table: its right-justified columns hold figures.
    """
    for column in table.columns:
        figures = column.justify == "right"
        column.no_wrap, column.overflow = figures, "fold"
        texts = map(str, (column.header, *column.cells))
        widest = max(cell_len(line) for text in texts for line in text.splitlines() or [""])
        column.min_width = widest if figures else max(column.min_width or 0, min(widest, _NAME))
    wide = console.options.update(max_width=_UNBOUNDED)
    needed = Measurement.get(console, wide, table).minimum
    if needed > console.width:
        table.width = needed  # what `print` is given is cut to the terminal
    console.print(table, crop=False)


def one_sentence_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn the package's errors into one sentence on standard error and exit code 1."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        from tlp_tvm.errors import LayoutError, RecordError, StateError, TlpTvmError

        try:
            return command(*args, **kwargs)
        except (TlpTvmError, RecordError, LayoutError, StateError, OSError) as error:
            sentence = Text.assemble(("error:", "bold red"), f" {with_flags(_sentence(error))}")
            progress_console.print(sentence, soft_wrap=True)
            raise typer.Exit(1) from error

    return wrapped


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename:
        return (
            f"{error.filename}: expected room on the disk, found: {error.strerror}; make room, and run the "
            "same command again: what was written is kept"
        )
    return str(error)


def layout_named(name: str) -> FeatureLayout:
    """A preset layout, or one from a JSON file.

    Raises:
        LayoutError: there is none.
    """
    from tlp_tvm.layout import FeatureLayout

    return FeatureLayout.load(name) if name.endswith(".json") else FeatureLayout.preset(name)


def one_of(option: str, value: str, known: list[str]) -> str:
    """The value, if it is known.

    Raises:
        BadParameter: it is not.
    """
    if value not in known:
        raise typer.BadParameter(f"expected one of {', '.join(known)}, found {value}", param_hint=option)
    return value


def failure_notes(failures: Mapping[str, int]) -> list[str]:
    """Failures by kind, as "3 runs too long", without the details of single messages."""
    kinds: dict[str, int] = {}
    for reason, count in failures.items():
        kind = reason.split(":")[0]
        kinds[kind] = kinds.get(kind, 0) + count
    return [f"{count} {kind}" for kind, count in kinds.items()]
