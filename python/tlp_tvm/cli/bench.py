"""`tlp-tvm bench`: throughput, beside the alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tlp_tvm.cli.parts.common import (
    JsonOption,
    console,
    framework_of,
    layout_named,
    one_of,
    one_sentence_errors,
    print_json,
    print_table,
)
from tlp_tvm.cli.parts.progress import status

if TYPE_CHECKING:
    from rich.table import Table

FrameworkOption = Annotated[str, typer.Option(help="ansor, or metaschedule in its own environment.")]

app = typer.Typer(help="Measure throughput, beside the alternatives in the same run.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure throughput, beside the alternatives in the same run."""


@app.command()
@one_sentence_errors
def extract(
    task: Annotated[str, typer.Option(help="Operator whose programs are embedded.")] = "conv2d",
    states: Annotated[int, typer.Option(min=1, help="Sampled programs per target.")] = 2000,
    fresh: Annotated[
        int,
        typer.Option(
            min=0,
            help="Fresh programs per layout, read once; 0 for none. At most 2,000 for CUDA.",
        ),
    ] = 0,
    seconds: Annotated[float, typer.Option(min=0.0, help="Seconds per rate.")] = 1.0,
    framework: FrameworkOption = "ansor",
    json: JsonOption = False,
) -> None:
    """Measure states embedded per second: native reader, Python route, TVM's per-store features.

    Example: tlp-tvm bench extract --fresh 20000
    """
    from tlp_tvm.cli.parts.bench_tables import extract_tables
    from tlp_tvm.framework import framework_named

    chosen = framework_named(framework_of(framework))
    with status("starting") as tell:
        results = chosen.bench_extract(task, states, fresh, seconds, tell)
    _show("extract", [each.to_dict() for each in results], extract_tables(results), json)


@app.command()
@one_sentence_errors
def score(
    task: Annotated[str, typer.Option(help="Operator whose programs are scored.")] = "conv2d",
    states: Annotated[int, typer.Option(min=1, help="Sampled programs for the CPU.")] = 2000,
    cuda_states: Annotated[
        int, typer.Option(min=0, help="Sampled programs for the GPU, 18 ms each; 0 for none.")
    ] = 256,
    model: Annotated[
        str | None,
        typer.Option(
            help="A shipped name, a checkpoint folder or an exported file. Default: the framework's."
        ),
    ] = None,
    torch_threads: Annotated[
        int, typer.Option(min=0, help="Threads and cores of both models; 0 for all cores.")
    ] = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Repeats of each model; the best counts.")] = 3,
    framework: FrameworkOption = "ansor",
    json: JsonOption = False,
) -> None:
    """Measure programs scored per second: TLP, and TVM's XGBModel with its features, in turns.

    Example: tlp-tvm bench score --torch-threads 1
    """
    from tlp_tvm.cli.parts.bench_tables import score_table
    from tlp_tvm.framework import framework_named

    chosen = framework_named(framework_of(framework))
    how = {"model": model or chosen.default_model, "threads": torch_threads, "rounds": rounds}
    with status("starting") as tell:
        results = chosen.bench_score(task, (states, cuda_states), how, tell)
    _show("score", [each.to_dict() for each in results], [score_table(results)], json)


@app.command()
@one_sentence_errors
def breed(
    task: Annotated[str, typer.Option(help="Operator whose programs are bred.")] = "conv2d",
    programs: Annotated[int, typer.Option(min=1, help="Children of a generation.")] = 10000,
    cuda: Annotated[bool, typer.Option(help="Breed for the GPU too.")] = True,
    model: Annotated[
        str | None,
        typer.Option(
            help="A shipped name, a checkpoint folder or an exported file. Default: the framework's."
        ),
    ] = None,
    torch_threads: Annotated[int, typer.Option(min=0, help="Threads and cores; 0 for all cores.")] = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Repeats of each stage; the best counts.")] = 3,
    framework: FrameworkOption = "ansor",
    json: JsonOption = False,
) -> None:
    """Measure programs bred, embedded and scored per second, beside TVM's evolution with the same model.

    Example: tlp-tvm bench breed --task dense --model epyc-small
    """
    from tlp_tvm.cli.parts.bench_tables import breed_table
    from tlp_tvm.framework import framework_named

    chosen = framework_named(framework_of(framework))
    how = {"model": model or chosen.default_model, "threads": torch_threads, "rounds": rounds}
    with status("starting") as tell:
        results = chosen.bench_breed(task, programs, cuda, how, tell)
    _show("breed", [each.to_dict() for each in results], [breed_table(results)], json)


def _show(what: str, figures: Any, tables: Sequence[Table], json: bool) -> None:
    """Print figures with the machine they were measured on."""
    from tlp_tvm.bench.timing import machine

    conditions = machine()
    if json:
        print_json({"machine": conditions, what: figures})
        return
    for table in tables:
        print_table(table)
    console.print(f"{conditions['cpu']}, {conditions['cores']} cores, commit {conditions['commit']}")


@app.command()
@one_sentence_errors
def train(
    dataset: Annotated[Path, typer.Argument(help="A built dataset, which is streamed, or a dataset folder.")],
    model: Annotated[
        str,
        typer.Option(help="recipe, paper, or a shipped name or checkpoint whose architecture is trained."),
    ] = "recipe",
    layout: Annotated[
        str | None, typer.Option(help="A layout's name or JSON file. Default: the model's, or ansor.")
    ] = None,
    platform: Annotated[
        list[str] | None, typer.Option(help="Train on this platform only. Repeatable. Default: all.")
    ] = None,
    programs: Annotated[int, typer.Option(min=1, help="Approximate programs per round.")] = 8192,
    batch: Annotated[int, typer.Option(min=1, help="Approximate programs per batch.")] = 256,
    precision: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
    rounds: Annotated[int, typer.Option(min=1, help="Repeats; the best counts.")] = 3,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    json: JsonOption = False,
) -> None:
    """Measure records trained on per second, embedding included, and extrapolate to TenSet.

    Example: tlp-tvm bench train runs/dataset --model paper --layout paper-cpu
    """
    from tlp_tvm.bench.train import bench_train
    from tlp_tvm.cli.parts.bench_tables import train_table
    from tlp_tvm.training.train_settings import Precision, TrainSettings

    chosen = Precision(one_of("--precision", precision, [each.value for each in Precision]))
    with status("starting") as tell:
        result = bench_train(
            dataset,
            model=model,
            layout=layout_named(layout) if layout else None,
            platforms=platform,
            programs=programs,
            settings=TrainSettings(batch_programs=batch, precision=chosen),
            device=device,
            rounds=rounds,
            progress=tell,
        )
    _show("train", result.to_dict(), [train_table(result)], json)
