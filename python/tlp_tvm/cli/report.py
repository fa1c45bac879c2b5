"""`tlp-tvm report`: a tuning run or a comparison as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tlp_tvm.cli.parts.common import console
from tlp_tvm.cli.parts.progress import status

PAGE = "report.html"


def report(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder that `tlp-tvm tune` or `tlp-tvm compare` wrote.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help=f"Where to write; RUN/{PAGE} if left out.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Shipped model or checkpoint folder that scores a run's programs. Default: the one that the "
            "run was tuned with, if it is a shipped one."
        ),
    ] = None,
) -> None:
    """Write a page of a tuning run or of a comparison: curves, tasks, scores, time, failures, settings.

    The page needs no other file. A run that was stopped, or still goes on, gives a page of what it has.

    Example: tlp-tvm report runs/dqn --out dqn.html
    """
    from tlp_tvm.files import write_whole
    from tlp_tvm.pages import report_page

    with status("scoring and drawing"):
        text = report_page(run, model)
    out = out or run / PAGE
    write_whole(out, text)
    console.print(f"page: {out}", highlight=False, soft_wrap=True)
