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
        Path | None, typer.Option(metavar="FILE.html", help=f"Where to write. Default: RUN/{PAGE}.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Shipped model or checkpoint folder that scores the run's programs. Default: the run's own "
            "model, if it is a shipped one."
        ),
    ] = None,
) -> None:
    """Write a page about a tuning run or a comparison: curves, tasks, scores, time, failures, settings.

    The page needs no other file. A stopped or running run gives a page of what it has so far.

    Example: tlp-tvm report runs/dqn --out dqn.html
    """
    from tlp_tvm.files import write_whole
    from tlp_tvm.pages import report_page

    with status("scoring and drawing"):
        text = report_page(run, model)
    out = out or run / PAGE
    write_whole(out, text)
    console.print(f"page: {out}", highlight=False, soft_wrap=True)
