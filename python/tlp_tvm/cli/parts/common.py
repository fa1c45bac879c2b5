"""What every command shares: the consoles, the JSON switch, and errors as one sentence."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TextIO, TypeVar

import typer
from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress

    from tlp_tvm.layout import FeatureLayout

P = ParamSpec("P")
R = TypeVar("R")

console = Console()
"""Results, for people."""

progress_console = Console(stderr=True)
"""Progress and errors, so that standard output stays clean."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

FrameworkOption = Annotated[
    str, typer.Option("--framework", help="Whose programs: ansor, or metaschedule of today's TVM.")
]


def framework_of(name: str) -> str:
    """`name`, if there is such a framework.

    Raises:
        BadParameter: there is none.
    """
    return one_of("--framework", name, ["ansor", "metaschedule"])


def print_json(value: Any) -> None:
    """Write `value` as one line of JSON to standard output."""
    typer.echo(json.dumps(value))


def one_sentence_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn the package's errors into one sentence on standard error and exit code 1."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        from tlp_tvm.errors import LayoutError, RecordError, StateError, TlpTvmError

        try:
            return command(*args, **kwargs)
        except (TlpTvmError, RecordError, LayoutError, StateError, OSError) as error:
            progress_console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
            raise typer.Exit(1) from error

    return wrapped


def layout_named(name: str) -> FeatureLayout:
    """A preset, or a layout's JSON file.

    Raises:
        LayoutError: there is none.
    """
    from tlp_tvm.layout import FeatureLayout

    return FeatureLayout.load(name) if name.endswith(".json") else FeatureLayout.preset(name)


def one_of(option: str, value: str, known: list[str]) -> str:
    """`value`, if it is known.

    Raises:
        BadParameter: it is not.
    """
    if value not in known:
        raise typer.BadParameter(f"expected one of {', '.join(known)}, found {value}", param_hint=option)
    return value


def measuring_progress(stream: TextIO) -> Progress:
    """A line that counts measured programs, with a field `note` for the rest.

    Args:
        stream: where to draw; standard error itself is TVM's while programs are measured.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(file=stream),
        redirect_stderr=False,
        transient=True,
        speed_estimate_period=120,
    )


def failure_notes(failures: Mapping[str, int]) -> list[str]:
    """Why programs failed, as "3 runs too long"; without what each one's own message adds."""
    kinds: dict[str, int] = {}
    for reason, count in failures.items():
        kind = reason.split(":")[0]
        kinds[kind] = kinds.get(kind, 0) + count
    return [f"{count} {kind}" for kind, count in kinds.items()]
