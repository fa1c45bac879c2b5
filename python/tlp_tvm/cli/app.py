"""`tlp-tvm`: all commands. Heavy imports (torch, tvm) stay inside them, so that --help is quick."""

from __future__ import annotations

import importlib

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

for _name in COMMANDS:
    _module = importlib.import_module(f"tlp_tvm.cli.{_name}")
    app.command(name=_name)(one_sentence_errors(getattr(_module, _name)))
for _name in GROUPS:
    app.add_typer(importlib.import_module(f"tlp_tvm.cli.{_name}").app, name=_name)


def main() -> None:
    """Entry point of the `tlp-tvm` script."""
    app()
