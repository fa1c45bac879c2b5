"""`tlp-tvm compare`: the same search under several cost models."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tlp_tvm.cli.parts.common import (
    FrameworkOption,
    JsonOption,
    console,
    framework_of,
    print_json,
    print_table,
)
from tlp_tvm.cli.parts.progress import MeasuringProgress, measuring_progress

if TYPE_CHECKING:
    from tlp_tvm.comparison import Comparison

CURVES = "comparison.png"


def compare(
    networks: Annotated[
        list[str],
        typer.Argument(metavar="NET...", help="Networks whose tasks are searched, e.g. resnet_50-224."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the comparison; an existing one is resumed.")],
    models: Annotated[
        str,
        typer.Option(
            help="Cost models: tlp, tlp-online, tlp-top (ansor), xgb, mlp (metaschedule), random; optionally "
            "with programs per round and population: tlp-online:16:512,xgb:64."
        ),
    ] = "tlp,tlp-online,xgb,random",
    trials: Annotated[int, typer.Option(min=1, help="Programs measured per task and model.")] = 200,
    seeds: Annotated[int, typer.Option(min=1, help="Searches per task and model.")] = 1,
    tasks: Annotated[int, typer.Option(min=0, help="Tasks per network, the heaviest first; 0 for all.")] = 0,
    far: Annotated[
        Path | None,
        typer.Option(
            metavar="DATASET",
            help="Built dataset that the model learned from: tasks that one of its training tasks "
            "resembles are left out.",
        ),
    ] = None,
    target: Annotated[str, typer.Option(help="TVM target. Default: this machine's CPU.")] = "",
    model: Annotated[
        str, typer.Option(help="Model behind the tlp names. Default: the framework's shipped model.")
    ] = "",
    measures_per_round: Annotated[
        int,
        typer.Option(
            min=0,
            help="Programs per round where --models gives none. Default 0: as `tlp-tvm tune` (ours) or "
            "TVM's task scheduler (xgb, random) does.",
        ),
    ] = 0,
    population: Annotated[int, typer.Option(min=0, help="Programs bred per round; 0 as above.")] = 0,
    framework: FrameworkOption = "ansor",
    as_json: JsonOption = False,
) -> None:
    """Search the same tasks under several cost models in turns, and compare them with TVM's XGBModel.

    A model's clock runs only in its own turns and counts everything: sampling, evolving, scoring, compiling,
    running and learning. Ctrl-C stops; the same command resumes with the task and seed it was at.

    Example: tlp-tvm compare bert_tiny-128 --tasks 2 --trials 128 --out runs/compare
    """
    from tlp_tvm.comparison import CompareSettings
    from tlp_tvm.comparison import compare as compare_models
    from tlp_tvm.comparison.compare_settings import contender
    from tlp_tvm.comparison.comparison_plot import draw_comparison

    framework = framework_of(framework)
    chosen = [contender(text, measures_per_round, population, framework) for text in models.split(",")]
    settings = CompareSettings(
        networks=tuple(networks),
        out=out,
        contenders=tuple(chosen),
        target=target,
        model=model,
        tasks=tasks,
        trials=trials,
        seeds=seeds,
        far=far,
        framework=framework,
    )
    with measuring_progress() as progress:
        comparison = compare_models(settings, _observer(progress))
    draw_comparison(comparison, out / CURVES)
    if as_json:
        print_json(
            {**comparison.content, "against_baseline": [asdict(x) for x in comparison.against_baseline()]}
        )
    else:
        _print(comparison)
        console.print(f"results: {out}\ncurves: {out / CURVES}", highlight=False, soft_wrap=True)


def _observer(progress: MeasuringProgress) -> Any:
    from tlp_tvm.comparison import CompareObserver

    class Shown(CompareObserver):
        """One line: programs measured, whose turn it is and its best latency; or else a line a round."""

        def __init__(self) -> None:
            self.programs = self.total = 0
            self.group = ""

        def step(self, words: str) -> None:
            progress.step(words)

        def planned(self, groups: int, done: int, trials: int) -> None:
            if done:
                progress.console.print(f"{done} of {groups} searches are done")
            self.programs, self.total = done * trials, groups * trials
            progress.step("searching", self.total, self.programs)

        def measured(self, group: str, model: str, best_s: float) -> None:
            if group != self.group:
                self.group = group
                progress.step(group, self.total, self.programs)
            self.programs += 1
            progress.measured(self.programs, f"{model}: {best_s * 1e3:.3g} ms")

        def round(self, group: str, model: str, programs: int, best_s: float) -> None:
            progress.line(f"{group}, {model}: {programs} programs, best {best_s * 1e3:.3g} ms")

    return Shown()


def _print(comparison: Comparison) -> None:
    from rich.table import Table

    runs = comparison.runs()
    baseline = comparison.baseline
    when = f" (@: when it matched {baseline})" if baseline else ""
    table = Table(title=f"best latency in ms{when}, {comparison.content['target']}", title_justify="left")
    table.add_column("task", overflow="fold", min_width=12)
    table.add_column("seed", justify="right")
    for name in comparison.contenders:
        table.add_column(name, justify="right", no_wrap=True)
    for key in dict.fromkeys((run.task, run.desc, run.seed) for run in runs):
        found = {run.contender: run for run in runs if (run.task, run.desc, run.seed) == key}
        goal = found[baseline].best[-1] if baseline and len(found[baseline].best) else None
        cells = []
        for name in comparison.contenders:
            run = found[name]
            if not len(run.best):
                cells.append("-")
                continue
            reached = run.reached(float(goal)) if goal is not None else None
            when = "" if reached is None else f" @{reached[1]:.0f}s"
            cells.append(f"{run.last * 1e3:.4g}{when}")
        table.add_row(key[1].removeprefix("vm_mod_fused_"), str(key[2]), *cells)
    print_table(table)
    for name in comparison.contenders:
        spent = [run.spent for run in runs if run.contender == name]
        total = sum(sum(parts.values()) for parts in spent) or 1.0
        shares = {part: sum(parts[part] for parts in spent) / total for part in spent[0]}
        words = ", ".join(f"{part} {share:.0%}" for part, share in shares.items())
        console.print(f"{name}: {total:,.0f} s: {words}", highlight=False, soft_wrap=True)
    for each in comparison.against_baseline():
        console.print(
            f"{each.contender} against {baseline}, {each.runs} searches: final latency {each.latency:.3f}x "
            f"(worst {each.slowest:.3f}x); matched in {each.reached} of {each.runs}, there "
            f"{each.sooner:.2f}x sooner than {baseline} first had its best, with {each.fewer:.2f}x fewer "
            f"programs; over all searches {each.sooner_all:.2f}x, 95% interval over tasks "
            f"{each.sooner_all_interval.low:.2f}x to {each.sooner_all_interval.high:.2f}x",
            highlight=False,
            soft_wrap=True,
        )
