"""`tlp-tvm doctor`: check the installation."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from tlp_tvm.cli.parts.common import JsonOption, print_json, print_table
from tlp_tvm.cli.parts.progress import status


def doctor(as_json: JsonOption = False) -> None:
    """Check TVM, the CPU and torch, and say how to fix what fails.

    The exit code is 0 if every check passes, else 1. Example: tlp-tvm doctor
    """
    from tlp_tvm.framework import framework_here
    from tlp_tvm.machine.checks import Check

    with status("checking TVM, the CPU and torch"):
        found = framework_here()
        checks = [Check("framework", True, found.title), *found.checks()]
    ok = all(check.ok for check in checks)
    if as_json:
        print_json({"ok": ok, "checks": [asdict(check) for check in checks]})
    else:
        print_table(_table(checks))
    raise typer.Exit(0 if ok else 1)


def _table(checks: list[Any]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table("", "check")
    table.add_column("found, and how to fix it", overflow="fold")
    for check in checks:
        verdict = Text("OK", "green") if check.ok else Text("FAILED", "bold red")
        lines = Text(check.found)
        if check.cure:
            lines.append(f"\n-> {check.cure}", "yellow")
        table.add_row(verdict, check.name, lines)
    return table
