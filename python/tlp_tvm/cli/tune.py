"""`tlp-tvm tune`: tune a whole network on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tlp_tvm.cli.common import JsonOption, console, failure_notes, measuring_progress, print_json

ROUNDING = 1e-4
"""Relative difference of outputs that another order of additions explains."""

_NONE = float("inf")

if TYPE_CHECKING:
    from rich.progress import Progress

    from tlp_tvm.ansor.tune_settings import TuneResult


def tune(
    network: Annotated[str, typer.Argument(metavar="NET", help="Name of a network, e.g. resnet_18-224.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; one that exists is gone on with.")],
    model: Annotated[
        str, typer.Option(help="Model that scores: a shipped name, a checkpoint folder or an exported file.")
    ] = "epyc",
    target: Annotated[str, typer.Option(help="TVM target; this machine's CPU if left out.")] = "",
    trials: Annotated[int, typer.Option(min=1, help="Programs to measure in all.")] = 200,
    platform: Annotated[
        str | None, typer.Option(help="Platform of the model; the one that the target names if left out.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the search.")] = 0,
    measures_per_round: Annotated[
        int, typer.Option(min=0, help="Programs of one task measured in a row; 0 chooses.")
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Tune a whole network and time it, untuned and tuned.

    Programs are measured on this machine. Ctrl-C stops; the same command goes on.

    Example: tlp-tvm tune dqn --trials 100 --out runs/dqn
    """
    from tlp_tvm.ansor.native_messages import STANDARD_ERROR
    from tlp_tvm.ansor.tune_settings import TuneSettings
    from tlp_tvm.ansor.tuning import tune_network

    settings = TuneSettings(
        network=network,
        out=out,
        model=model,
        target=target,
        trials=trials,
        platform=platform,
        seed=seed,
        measures_per_round=measures_per_round,
        hide_messages=True,
    )
    # A descriptor of its own for the progress: standard error itself is TVM's during the search.
    with os.fdopen(os.dup(STANDARD_ERROR), "w") as stream, measuring_progress(stream) as progress:
        result = tune_network(settings, _observer(progress))
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result)


def _observer(progress: Progress) -> Any:
    from tlp_tvm.ansor.tune_observer import TuneObserver

    class Shown(TuneObserver):
        """One line: the step, or programs measured with the estimate and failures so far."""

        def __init__(self) -> None:
            self.line = progress.add_task("starting", total=None, note="")

        def step(self, name: str) -> None:
            progress.reset(self.line, total=None, description=name, note="")

        def planned(self, tasks: int, trials: int, reused: int) -> None:
            if reused:
                progress.console.print(f"going on after {reused} programs")
            progress.reset(
                self.line,
                total=trials,
                completed=reused,
                description=f"measuring programs of {tasks} tasks",
                note="",
            )

        def round(self, task: str) -> None:
            progress.update(self.line, description=f"measuring {task.removeprefix('vm_mod_fused_')[:40]}")

        def measured(self, trials: int, estimate: float, failures: Mapping[str, int]) -> None:
            notes = [] if estimate == float("inf") else [f"estimate {estimate * 1e3:.3g} ms"]
            progress.update(self.line, completed=trials, note=", ".join(notes + failure_notes(failures)))

    return Shown()


def _print(result: TuneResult) -> None:
    from rich.table import Table

    table = Table(title=f"{result.network} on {result.target}", title_justify="left")
    for name, justify in (("task", "left"), ("x", "right"), ("programs", "right"), ("failed", "right")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for name in ("first ms", "best ms", "GFLOP/s", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    shares = {task: task.best * task.weight / result.estimate for task in result.tasks if task.best < _NONE}
    for task in sorted(result.tasks, key=lambda task: shares.get(task, 0.0), reverse=True):
        name = task.name.removeprefix("vm_mod_fused_")
        counts = (str(task.weight), str(task.trials), str(task.failures))
        if task not in shares:
            table.add_row(name, *counts, "-", "-", "-", "-")
            continue
        table.add_row(
            name,
            *counts,
            f"{task.first * 1e3:.3g}",
            f"{task.best * 1e3:.3g}",
            f"{task.flops / task.best / 1e9:.3g}",
            f"{shares[task]:.0%}",
        )
    console.print(table)
    ended = result.end_to_end
    for reason, count in result.failures.items():
        console.print(f"{count} programs failed: {reason}", highlight=False, soft_wrap=True)
    for task in result.unmeasured:
        console.print(
            f"no program of {task.name} ran: it keeps TVM's own schedule", highlight=False, soft_wrap=True
        )
    head = f", platform {result.platform}" if result.platform else ""
    console.print(
        f"untuned [bold]{ended.untuned_latency * 1e3:.4g} ms[/], "
        f"tuned [bold]{ended.tuned_latency * 1e3:.4g} ms[/]: "
        f"[bold]{ended.speedup:.2f}x[/] (outputs differ by {ended.difference:.1g})\n"
        f"programs measured: {result.trials}\n"
        f"model: {result.model}{head}\nlog: {result.log}\ncurve: {result.curve}\nreport: {result.report}",
        highlight=False,
        soft_wrap=True,
    )
    if ended.difference > ROUNDING:
        console.print(
            "[yellow]the outputs differ by more than rounding explains: do not use these records[/]"
        )
    if ended.speedup < 1:
        console.print(
            "the network is faster untuned: measure more programs, with more --trials", highlight=False
        )
