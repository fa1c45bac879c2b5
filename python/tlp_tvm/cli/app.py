"""`tlp-tvm`: all commands. Heavy imports (torch, tvm) stay inside them, so that --help is quick."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

from tlp_tvm.cli.parts.common import one_sentence_errors

COMMANDS = ("doctor", "collect", "train", "evaluate", "export", "tune", "compare", "report")
"""Modules of this package that each define a function of the same name."""

GROUPS = ("bench", "fleet", "dataset")
"""Modules of this package that each define a `typer.Typer` named `app` with subcommands."""

app = typer.Typer(
    name="tlp-tvm",
    help="TLP: a learned cost model for TVM's auto-schedulers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(asked: bool) -> None:
    if asked:
        from tlp_tvm import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def tlp_tvm(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """TLP: a learned cost model for TVM's auto-schedulers."""


for _name in COMMANDS:
    _module = importlib.import_module(f"tlp_tvm.cli.{_name}")
    app.command(name=_name)(one_sentence_errors(getattr(_module, _name)))
for _name in GROUPS:
    app.add_typer(importlib.import_module(f"tlp_tvm.cli.{_name}").app, name=_name)


def main() -> None:
    """Entry point of the `tlp-tvm` script."""
    app()
