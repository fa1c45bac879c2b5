"""Running `tlp-tvm` in this process."""

from __future__ import annotations

import re

from typer.testing import CliRunner, Result

from tlp_tvm.cli.app import app


def run(*arguments: object) -> Result:
    """What a command printed, and how it ended."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments: object) -> str:
    """Standard output of a command that succeeds."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object, code: int = 1) -> str:
    """The sentence of a command that fails; of a wrong option (code 2), without the box around it."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    text = " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.stderr).split())
    return text if code != 1 else text[text.index("error:") :]
