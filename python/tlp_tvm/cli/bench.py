"""`tlp-tvm bench`: throughput beside the alternatives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tlp_tvm.cli.common import (
    JsonOption,
    console,
    layout_named,
    one_of,
    one_sentence_errors,
    print_json,
    progress_console,
)

if TYPE_CHECKING:
    from rich.table import Table

    from tlp_tvm.bench.extract import ExtractResult
    from tlp_tvm.bench.extract_traces import TraceExtractResult
    from tlp_tvm.bench.score import ScoreResult
    from tlp_tvm.bench.score_traces import TraceScoreResult
    from tlp_tvm.bench.train import TrainResult

FrameworkOption = Annotated[str, typer.Option(help="ansor, or metaschedule in its own environment.")]

app = typer.Typer(help="Throughput beside the alternatives, in one run.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Throughput beside the alternatives, in one run."""


@app.command()
@one_sentence_errors
def extract(
    task: Annotated[str, typer.Option(help="Operator whose programs are embedded.")] = "conv2d",
    states: Annotated[int, typer.Option(min=1, help="Sampled programs per target.")] = 2000,
    fresh: Annotated[
        int,
        typer.Option(
            min=0,
            help="New programs for a first pass, per layout; 0 for none. For CUDA at most 2,000.",
        ),
    ] = 0,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time to spend on each rate.")] = 1.0,
    framework: FrameworkOption = "ansor",
    json: JsonOption = False,
) -> None:
    """States embedded per second: native reader, Python route, TVM's per-store features, and the ratios.

    Example: tlp-tvm bench extract --fresh 20000
    """
    if _is_metaschedule(framework):
        _extract_traces(task, states, seconds, json)
        return
    from tlp_tvm.bench.extract import CPU_TARGET, CUDA_TARGET, bench_extract
    from tlp_tvm.bench.timing import machine

    with progress_console.status("starting") as status:
        results = [
            bench_extract(task, target, states=states, fresh=fresh, seconds=seconds, progress=status.update)
            for target in (CPU_TARGET, CUDA_TARGET)
        ]
    conditions = machine()
    if json:
        print_json({"machine": conditions, "extract": [result.to_dict() for result in results]})
        return
    for result in results:
        console.print(_table(result))
    console.print(f"{conditions['cpu']}, {conditions['cores']} cores, commit {conditions['commit']}")


@app.command()
@one_sentence_errors
def score(
    task: Annotated[str, typer.Option(help="Operator whose programs are scored.")] = "conv2d",
    states: Annotated[int, typer.Option(min=1, help="Sampled programs for the CPU.")] = 2000,
    cuda_states: Annotated[
        int, typer.Option(min=0, help="Sampled programs for the GPU, 18 ms each; 0 leaves it out.")
    ] = 256,
    model: Annotated[
        str | None,
        typer.Option(
            help="A shipped name, a checkpoint folder or an exported file; without it epyc, or for "
            "metaschedule an untrained one."
        ),
    ] = None,
    torch_threads: Annotated[
        int, typer.Option(min=0, help="Threads and cores of both models; 0 for every core.")
    ] = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each model; the best counts.")] = 3,
    framework: FrameworkOption = "ansor",
    json: JsonOption = False,
) -> None:
    """Programs scored per second: TLP, and TVM's XGBModel with its feature extraction, in turns.

    Example: tlp-tvm bench score --torch-threads 1
    """
    if _is_metaschedule(framework):
        _score_traces(task, {"llvm": states, "cuda": cuda_states}, model, torch_threads, rounds, json)
        return
    from tlp_tvm.bench.score import CPU_TARGET, CUDA_TARGET, bench_score
    from tlp_tvm.bench.timing import machine

    with progress_console.status("starting") as status:
        results = [
            bench_score(
                task,
                target,
                states=count,
                model=model or "epyc",
                threads=torch_threads,
                rounds=rounds,
                progress=status.update,
            )
            for target, count in ((CPU_TARGET, states), (CUDA_TARGET, cuda_states))
            if count
        ]
    conditions = machine()
    if json:
        print_json({"machine": conditions, "score": [result.to_dict() for result in results]})
        return
    console.print(_score_table(results))
    console.print(f"{conditions['cpu']}, {conditions['cores']} cores, commit {conditions['commit']}")


def _is_metaschedule(framework: str) -> bool:
    """Whether that was asked for. Raises TvmNotFoundError, with the cure, where its TVM is not installed."""
    if one_of("--framework", framework, ["ansor", "metaschedule"]) == "ansor":
        return False
    from tlp_tvm.metaschedule.locate import load_tvm

    load_tvm()
    return True


def _tasks_of(task: str) -> list[str]:
    from tlp_tvm.metaschedule.workloads import WORKLOADS

    return list(WORKLOADS) if task == "all" else [one_of("--task", task, ["all", *WORKLOADS])]


def _extract_traces(task: str, count: int, seconds: float, json: bool) -> None:
    from tlp_tvm.bench.extract_traces import bench_extract_traces
    from tlp_tvm.bench.timing import machine
    from tlp_tvm.bench.traces import TARGET_KINDS

    with progress_console.status("starting") as status:
        results = [
            bench_extract_traces(name, kind, count=count, seconds=seconds, progress=status.update)
            for name in _tasks_of(task)
            for kind in TARGET_KINDS
        ]
    conditions = machine()
    if json:
        print_json({"machine": conditions, "extract": [result.to_dict() for result in results]})
        return
    console.print(_trace_table(results))
    console.print(f"{conditions['cpu']}, {conditions['cores']} cores, commit {conditions['commit']}")


def _score_traces(
    task: str, counts: dict[str, int], model: str | None, threads: int, rounds: int, json: bool
) -> None:
    from tlp_tvm.bench.score_traces import bench_score_traces
    from tlp_tvm.bench.timing import machine

    with progress_console.status("starting") as status:
        results = [
            bench_score_traces(
                name, kind, count=count, model=model, threads=threads, rounds=rounds, progress=status.update
            )
            for name in _tasks_of(task)
            for kind, count in counts.items()
            if count
        ]
    conditions = machine()
    if json:
        print_json({"machine": conditions, "score": [result.to_dict() for result in results]})
        return
    console.print(_trace_score_table(results))
    console.print(f"{conditions['cpu']}, {conditions['cores']} cores, commit {conditions['commit']}")


@app.command()
@one_sentence_errors
def train(
    dataset: Annotated[Path, typer.Argument(help="A built dataset, which is streamed, or a dataset folder.")],
    model: Annotated[
        str, typer.Option(help="recipe, paper, or a shipped name or checkpoint, whose shape is trained anew.")
    ] = "recipe",
    layout: Annotated[
        str | None, typer.Option(help="A layout's name or JSON file; the model's, or ansor, without it.")
    ] = None,
    platform: Annotated[
        list[str] | None, typer.Option(help="Only this platform; repeat for more. All without it.")
    ] = None,
    programs: Annotated[int, typer.Option(min=1, help="About how many a round.")] = 8192,
    batch: Annotated[int, typer.Option(min=1, help="About how many programs a batch.")] = 256,
    precision: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
    rounds: Annotated[int, typer.Option(min=1, help="Turns; the best counts.")] = 3,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    json: JsonOption = False,
) -> None:
    """Records trained on per second, embedding included, and what an epoch of TenSet would take.

    Example: tlp-tvm bench train runs/dataset --model paper --layout paper-cpu
    """
    from tlp_tvm.bench.timing import machine
    from tlp_tvm.bench.train import bench_train
    from tlp_tvm.training.settings import Precision, TrainSettings

    chosen = Precision(one_of("--precision", precision, [each.value for each in Precision]))
    with progress_console.status("starting") as status:
        result = bench_train(
            dataset,
            model=model,
            layout=layout_named(layout) if layout else None,
            platforms=platform,
            programs=programs,
            settings=TrainSettings(batch_programs=batch, precision=chosen),
            device=device,
            rounds=rounds,
            progress=status.update,
        )
    conditions = machine()
    if json:
        print_json({"machine": conditions, "train": result.to_dict()})
        return
    console.print(_train_table(result))
    console.print(f"{conditions['cpu']}, {conditions['cores']} cores, commit {conditions['commit']}")


def _train_table(result: TrainResult) -> Table:
    from rich.table import Table

    way = "streamed" if result.streamed else "in memory"
    table = Table(
        title=f"{result.model}, {result.parameters:,} parameters, layout {result.layout}, {result.platforms} "
        f"platforms: {result.device}, {result.precision}",
        caption=f"{result.programs:,} programs of {result.records_a_program:.2f} records {way}, batches of "
        f"{result.batch_programs}; peak {result.peak_mib:,} MiB",
    )
    epochs = [f"an epoch of {name} records" for name in result.epochs]
    for column in ("what", "records/s", *epochs):
        table.add_column(column, justify="left" if column == "what" else "right")
    seconds = (f"{value:,.0f} s" for value in result.epochs.values())
    table.add_row("training, embedding included", f"{result.training:,.0f}", *seconds)
    table.add_row("only reading and embedding", f"{result.batches:,.0f}")
    table.add_row("only the network", f"{result.network:,.0f}")
    return table


def _score_table(results: list[ScoreResult]) -> Table:
    from rich.table import Table

    first = results[0]
    table = Table(title=f"{first.task}: states scored per second, {first.threads} threads each")
    columns = ("target", "states", f"TLP {first.model}", "of it reading", "TVM's XGBModel", "ratio")
    for column in (*columns, "in CPU time", "invalid"):
        table.add_column(column, justify="left" if column == "target" else "right")
    for result in results:
        rates = (f"{rate:,.0f}" for rate in (result.ours, result.embedding, result.xgb))
        ratios = (f"{ratio:,.1f}x" for ratio in (result.ratio, result.cpu_ratio))
        table.add_row(result.target, f"{result.states:,}", *rates, *ratios, f"{result.invalid:.0%}")
    return table


def _trace_table(results: list[TraceExtractResult]) -> Table:
    from rich.table import Table

    table = Table(title="MetaSchedule candidates embedded per second")
    routes = ("1 thread", "all threads", "Python route", "ratio", "JSON read natively", "ratio")
    for column in ("task", "target", "primitives", *routes):
        table.add_column(column, justify="left" if column in ("task", "target") else "right")
    for result in results:
        rates = [result.one_thread, result.every_thread, result.python_route, result.json_route]
        one, every, python, text = (f"{rate:,.0f}" for rate in rates)
        ratios = (f"{ratio:,.1f}x" for ratio in (result.ratio, result.json_ratio))
        cells = [one, every, python, next(ratios), text, next(ratios)]
        table.add_row(result.task, result.target, f"{result.primitives:.1f}", *cells)
    return table


def _trace_score_table(results: list[TraceScoreResult]) -> Table:
    from rich.table import Table

    first = results[0]
    table = Table(
        title=f"MetaSchedule candidates scored per second, {first.threads} threads each",
        caption=f"model: {first.model}",
    )
    for column in ("task", "target", "TLP", "of it reading", "TVM's XGBModel", "ratio", "in CPU time"):
        table.add_column(column, justify="left" if column in ("task", "target") else "right")
    for result in results:
        rates = (f"{rate:,.0f}" for rate in (result.ours, result.embedding, result.xgb))
        ratios = (f"{ratio:,.1f}x" for ratio in (result.ratio, result.cpu_ratio))
        table.add_row(result.task, result.target, *rates, *ratios)
    return table


def _table(result: ExtractResult) -> Table:
    from rich.table import Table

    states = f"{result.states:,} states of {result.primitives:.1f} primitives"
    table = Table(title=f"{result.task}, {result.target}: {states}")
    for column in ("route", "states/s", "/ TVM features", "/ Python route"):
        table.add_column(column, justify="left" if column == "route" else "right", no_wrap=True)
    rates = {
        "TVM per-store features": result.tvm_features,
        "serialise, json.loads, encode": result.python_route,
    }
    for native in result.native:
        rates[f"native, {native.layout}, 1 thread"] = native.one_thread
        rates[f"native, {native.layout}, all threads"] = native.warm
        if native.fresh:
            rates[f"native, {native.layout}, {native.fresh_states:,} fresh states"] = native.fresh
    for route, rate in rates.items():
        to_features, to_python = rate / result.tvm_features, rate / result.python_route
        table.add_row(route, f"{rate:,.0f}", f"{to_features:,.1f}x", f"{to_python:,.1f}x")
    return table
