"""The tables that `tlp-tvm bench` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from tlp_tvm.bench.breed_result import BreedResult
from tlp_tvm.bench.extract_result import ExtractResult, TraceExtractResult, ratio_of_all
from tlp_tvm.bench.score_result import ScoreResult
from tlp_tvm.bench.train import TrainResult


def extract_tables(results: Sequence[ExtractResult | TraceExtractResult]) -> list[Table]:
    """Of Ansor's programs a table a target, of MetaSchedule's one of all."""
    traces = [result for result in results if isinstance(result, TraceExtractResult)]
    states = [extract_table(result) for result in results if isinstance(result, ExtractResult)]
    return [*states, *([trace_table(traces)] if traces else [])]


def extract_table(result: ExtractResult) -> Table:
    """A row per route, for one target."""
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


def trace_table(results: Sequence[TraceExtractResult]) -> Table:
    """A row per task and target of MetaSchedule, in 80 columns."""
    title = "MetaSchedule candidates embedded per second"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    routes = ("1\nthread", "all\nthreads", "Python\nroute", "ratio\nto it", "to JSON\nroute")
    for column in ("task", "target", "prim-\nitives", *routes):
        table.add_column(column, justify="left" if column in ("task", "target") else "right", no_wrap=True)
    for result in results:
        rates = (result.one_thread, result.every_thread, result.python_route)
        ratios = (f"{ratio:,.0f}x" for ratio in (result.ratio, result.json_ratio))
        cells = [f"{result.primitives:.1f}", *(f"{rate:,.0f}" for rate in rates), *ratios]
        table.add_row(result.task, result.target, *cells)
    if len(results) > 1:
        ratios = (f"{ratio_of_all(results, f'{name}_route'):,.0f}x" for name in ("python", "json"))
        table.add_section()
        table.add_row("one of each", *[""] * 5, *ratios)
    return table


def score_table(results: Sequence[ScoreResult]) -> Table:
    """A row per task and target."""
    first = results[0]
    table = Table(title=f"programs scored per second, {first.threads} threads each")
    names = ("task", "target")
    columns = (*names, "programs", f"TLP {first.model}", "reading alone", "TVM's XGBModel", "ratio")
    for column in (*columns, "in CPU time", "invalid"):
        table.add_column(column, justify="left" if column in names else "right")
    for result in results:
        rates = (f"{rate:,.0f}" for rate in (result.ours, result.embedding, result.xgb))
        ratios = (f"{ratio:,.1f}x" for ratio in (result.ratio, result.cpu_ratio))
        cells = [f"{result.programs:,}", *rates, *ratios, f"{result.invalid:.0%}"]
        table.add_row(result.task, result.target, *cells)
    return table


def breed_table(results: Sequence[BreedResult]) -> Table:
    """A row per stage, a column per target."""
    first = results[0]
    title = f"{first.task}: programs per second, {first.model}, {first.threads} threads"
    table = Table(title=title)
    table.add_column("stage")
    for result in results:
        table.add_column(result.target.split()[0], justify="right")
    stages = {
        "bred": "bred",
        "embedded": "embedded",
        "bred and embedded": "bred_embedded",
        "encoded and scored": "scored",
        "the network alone": "network",
        "bred, encoded and scored": "bred_scored",
        "TVM's evolution, same model": "tvm",
    }
    for stage, name in stages.items():
        table.add_row(stage, *(f"{getattr(result, name):,.0f}" for result in results))
    table.add_row("ratio to TVM", *(f"{result.ratio:,.1f}x" for result in results))
    table.add_row("share of the network's rate", *(f"{result.of_network:.0%}" for result in results))
    return table


def train_table(result: TrainResult) -> Table:
    """Rates of training and of its parts, and the time of an epoch."""
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
    table.add_row("reading and embedding alone", f"{result.batches:,.0f}")
    table.add_row("the network alone", f"{result.network:,.0f}")
    return table
