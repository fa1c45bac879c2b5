"""`tlp-tvm doctor`: is this machine ready?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from tlp_tvm.cli.parts.common import JsonOption, print_json, print_table
from tlp_tvm.cli.parts.progress import status


def doctor(as_json: JsonOption = False) -> None:
    """Say which framework and TVM are used, whether everything works with it, and the cure where it does not.

    Exit code 0 if all is well, 1 if not. Example: tlp-tvm doctor
    """
    from tlp_tvm.machine.checks import diagnose

    with status("looking at TVM, the CPU and torch"):
        checks = diagnose()
    ok = all(check.ok for check in checks)
    if as_json:
        print_json({"ok": ok, "checks": [asdict(check) for check in checks]})
    else:
        print_table(_table(checks))
    raise typer.Exit(0 if ok else 1)


def _table(checks: list[Any]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table("", "what")
    table.add_column("found, and the cure", overflow="fold")
    for check in checks:
        verdict = Text("OK", "green") if check.ok else Text("FAILED", "bold red")
        lines = Text(check.found)
        if check.cure:
            lines.append(f"\n-> {check.cure}", "yellow")
        table.add_row(verdict, check.name, lines)
    return table
