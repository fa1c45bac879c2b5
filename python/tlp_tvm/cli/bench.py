"""`tlp-tvm bench`: throughput beside the alternatives."""

from __future__ import annotations

from typing import Annotated

import typer

from tlp_tvm.cli.common import JsonOption, console, one_sentence_errors, print_json, progress_console

app = typer.Typer(help="Throughput beside the alternatives, in one run.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Throughput beside the alternatives, in one run."""


@app.command()
@one_sentence_errors
def extract(
    task: Annotated[str, typer.Option(help="Operator whose programs are embedded.")] = "conv2d",
    states: Annotated[int, typer.Option(min=1, help="Sampled programs per target.")] = 2000,
    fresh: Annotated[int, typer.Option(min=0, help="New programs for a first pass, per layout; 0 for none.")] = 0,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time to spend on each rate.")] = 1.0,
    json: JsonOption = False,
) -> None:
    """States embedded per second: native reader, Python route, TVM's per-store features, and the ratios.

    Example: tlp-tvm bench extract --fresh 20000
    """
    from rich.table import Table

    from tlp_tvm.bench.extract import CPU_TARGET, CUDA_TARGET, bench_extract
    from tlp_tvm.bench.timing import machine

    results = []
    with progress_console.status("starting") as status:
        for target in (CPU_TARGET, CUDA_TARGET):
            results.append(
                bench_extract(
                    task, target, states=states, fresh=fresh, seconds=seconds, progress=status.update
                )
            )
    conditions = machine()
    if json:
        print_json({"machine": conditions, "extract": [result.to_dict() for result in results]})
        return
    for result in results:
        table = Table(title=f"{result.task}, {result.target}: {result.states:,} states of {result.primitives:.1f} primitives")
        for column in ("route", "states/s", "ratio to TVM features", "ratio to Python route"):
            table.add_column(column, justify="left" if column == "route" else "right")

        def row(name: str, rate: float, result: object = result, table: Table = table) -> None:
            tvm_features, python_route = result.tvm_features, result.python_route  # type: ignore[attr-defined]
            table.add_row(name, f"{rate:,.0f}", f"{rate / tvm_features:,.1f}x", f"{rate / python_route:,.1f}x")

        row("TVM per-store features", result.tvm_features)
        row("serialise, json.loads, encode", result.python_route)
        for native in result.native:
            row(f"native, {native.layout}, 1 thread", native.one_thread)
            row(f"native, {native.layout}, all threads", native.warm)
            if native.fresh:
                row(f"native, {native.layout}, all threads, fresh", native.fresh)
        console.print(table)
    console.print(f"{conditions['cpu']}, {conditions['cores']} cores, commit {conditions['commit']}")
