"""`tlp-tvm export`: a model as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tlp_tvm.cli.parts.common import JsonOption, console, print_json


def export(
    model: Annotated[str, typer.Argument(help="A shipped model or a checkpoint folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .pt file to write.")],
    as_json: JsonOption = False,
) -> None:
    """Write a model as one self-describing TorchScript file, and check that it scores like the model.

    Example: tlp-tvm export epyc -o epyc.pt
    """
    from tlp_tvm.model.checkpoint import load_model
    from tlp_tvm.model.export import export_model

    difference = export_model(load_model(model), output)
    if as_json:
        print_json(
            {"model": model, "file": str(output), "bytes": output.stat().st_size, "difference": difference}
        )
    else:
        console.print(
            f"{output}: {output.stat().st_size:,} bytes, scores within {difference:.1g} of the model's"
        )
