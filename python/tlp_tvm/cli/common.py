"""What every command shares: the consoles, the JSON switch, and errors as one sentence."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Annotated, Any, ParamSpec, TypeVar

import typer
from rich.console import Console

P = ParamSpec("P")
R = TypeVar("R")

console = Console()
"""Results, for people."""

progress_console = Console(stderr=True)
"""Progress and errors, so that standard output stays clean."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


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
