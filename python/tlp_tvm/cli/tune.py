"""`tlp-tvm tune`: tune a whole network on this machine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tlp_tvm.cli.parts.common import (
    FrameworkOption,
    JsonOption,
    console,
    failure_notes,
    framework_of,
    print_json,
    print_table,
)
from tlp_tvm.cli.parts.progress import MeasuringProgress, measuring_progress

_NONE = float("inf")

_SHOWN = 0.01
"""Operators with a smaller share of the network are summed up."""

if TYPE_CHECKING:
    from tlp_tvm.beside.beside_result import BesideResult
    from tlp_tvm.tuning.network.turns import EndToEnd
    from tlp_tvm.tuning.tune_settings import TuneResult, TuneSettings


def tune(
    network: Annotated[
        str,
        typer.Argument(
            metavar="NET",
            help="A built-in network, e.g. resnet_18-224, or a file: ONNX or TorchScript for ansor, .pt2 for "
            "metaschedule.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run; an existing run is resumed.")],
    model: Annotated[
        str,
        typer.Option(
            help="Model that scores: a shipped name, a checkpoint folder or an exported file. Default: the "
            "model of the resumed run, or else the framework's shipped model."
        ),
    ] = "",
    target: Annotated[str, typer.Option(help="TVM target. Default: this machine's CPU.")] = "",
    minutes: Annotated[
        float, typer.Option(min=0, help="Take this many minutes, builds included; 0 for no limit.")
    ] = 0.0,
    trials: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Programs to measure in total: 200, or as many as --minutes allow. With 0 the model chooses "
            "alone, for any target.",
        ),
    ] = None,
    platform: Annotated[
        str | None, typer.Option(help="Platform of the model. Default: the one that the target names.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    measures_per_round: Annotated[
        int, typer.Option(min=0, help="Programs measured per round; 0 for the default.")
    ] = 0,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=1,3,224,224", help="Shape of an input that the file leaves open. Repeatable."
        ),
    ] = None,
    warm_start: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="LOG", help="Log or folder of an earlier run: start from its programs of the same tasks."
        ),
    ] = None,
    similar: Annotated[
        bool,
        typer.Option(
            help="Also start from --warm-start programs of the same operators at other shapes, made to fit."
        ),
    ] = False,
    choose: Annotated[
        str,
        typer.Option(
            help="Programs to measure: diverse also counts what they may teach; top takes the best scores."
        ),
    ] = "diverse",
    hopeless: Annotated[
        float,
        typer.Option(
            min=0, help="Time a program only once if it is this many times slower than the best; 0 for never."
        ),
    ] = 0.0,
    beside: Annotated[
        str,
        typer.Option(
            metavar="PEER,...",
            help="Also time it in turns with peers: onnxruntime, openvino, torch, torch-compile.",
        ),
    ] = "",
    framework: FrameworkOption = "ansor",
    as_json: JsonOption = False,
) -> None:
    """Tune a network, time it untuned and tuned, and write it as a library.

    Programs are measured on this machine. Ctrl-C stops the run; the same command resumes it.

    Example: tlp-tvm tune dqn --trials 100 --out runs/dqn

    Example: tlp-tvm tune net.onnx --shape image=1,3,224,224 --warm-start runs/dqn --out runs/net

    Example: tlp-tvm tune net.onnx --minutes 10 --beside onnxruntime,openvino --out runs/net
    """
    from tlp_tvm.beside.peer_kinds import file_for_peers, peers_named
    from tlp_tvm.framework import framework_named
    from tlp_tvm.measuring.pool import MeasureSettings
    from tlp_tvm.tuning.tune_settings import TuneSettings, usual_trials

    peers = peers_named(beside) if beside else ()
    if peers:
        file_for_peers(network, peers)
    settings = TuneSettings(
        network=network,
        out=out,
        model=model,
        target=target,
        trials=usual_trials(minutes) if trials is None else trials,
        platform=platform,
        seed=seed,
        measures_per_round=measures_per_round,
        hide_messages=True,
        shapes=framework_named(framework_of(framework)).parse_shapes(shape or []),
        warm_start=tuple(warm_start or []),
        similar=similar,
        choose=choose,
        measure=MeasureSettings(threads=0, hopeless=hopeless),
        framework=framework,
        minutes=minutes,
    )
    _tune(settings, peers, as_json)


def _tune(settings: TuneSettings, peers: Sequence[str], as_json: bool) -> None:
    """Tune with a progress line, then print the result; the same for the peers."""
    from tlp_tvm.cli.parts.beside_table import print_beside
    from tlp_tvm.tuning.flow import tune_network

    with measuring_progress() as progress:
        result = tune_network(settings, _observer(progress, settings.minutes))
    if not as_json:
        _print(result)
    beside = _beside(settings, peers, result) if peers else None
    if as_json:
        print_json(result.to_dict() | ({} if beside is None else {"beside": beside.to_dict()}))
    elif beside is not None:
        print_beside(beside)


def _beside(settings: TuneSettings, peers: Sequence[str], result: TuneResult) -> BesideResult:
    """Time the tuned network and its peers with the target's number of threads."""
    from tlp_tvm.beside.timing_peers import time_tuned

    with measuring_progress() as progress:
        return time_tuned(settings, result, peers, progress.step)


def _observer(progress: MeasuringProgress, minutes: float) -> Any:
    from tlp_tvm.tuning.tune_observer import TuneObserver
    from tlp_tvm.tuning.tune_settings import UNBOUNDED_TRIALS

    class Shown(TuneObserver):
        """One line: the step, or the programs measured, what they gained, the time and the failures."""

        def __init__(self) -> None:
            self.trials = 0
            self.began = time.monotonic()
            self.first = 0.0

        def step(self, name: str) -> None:
            progress.step(name)

        def planned(self, tasks: int, trials: int, reused: int) -> None:
            self.trials = trials
            if not trials:
                return
            if reused:
                progress.console.print(f"resuming after {reused} programs")
            total = trials if trials < UNBOUNDED_TRIALS else None
            progress.step(f"measuring programs of {tasks} tasks", total, reused)

        def warmed(self, used: int, passed_over: int) -> None:
            others = f", {passed_over} are of other tasks or targets" if passed_over else ""
            progress.console.print(f"starting from {used} programs of earlier logs{others}")

        def round(self, task: str) -> None:
            verb = "measuring" if self.trials else "choosing for"
            progress.part(f"{verb} {task.removeprefix('vm_mod_fused_')[:40]}")

        def measured(self, trials: int, estimate: float, failures: Mapping[str, int]) -> None:
            notes = []
            if estimate < _NONE:
                self.first = self.first or estimate
                notes.append(f"estimate {estimate * 1e3:.3g} ms, at first {self.first * 1e3:.3g}")
            if minutes:
                notes.append(f"{(time.monotonic() - self.began) / 60:.1f} of {minutes:g} minutes")
            progress.measured(trials, ", ".join(notes + failure_notes(failures)))

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
            f"{task.flops / task.best / 1e9:.3g}" if task.flops > 0 else "-",
            f"{shares[task]:.0%}",
        )
    print_table(table)
    for reason, count in result.failures.items():
        _say(f"{count} programs failed: {reason}")
    lack = "ran" if result.trials else "compiles"
    for task in result.unmeasured:
        why = f"no program of {task.name} {lack}" if task.best == _NONE else f"inside, {task.name} is slower"
        _say(f"{why}: it keeps TVM's own schedule")
    if result.end_to_end is None:
        _say("this machine cannot run programs for that target: the network is not timed")
    else:
        _print_operators(result)
        _say_times(result.end_to_end)
    if result.changed_inside:
        _say(
            f"{result.changed_inside} tasks have a program that is faster inside than their fastest by itself"
        )
    if result.kept_untuned:
        _say(
            "the network is faster untuned: the library is the untuned one; measure more programs (--trials)"
        )
    head = f", platform {result.platform}" if result.platform else ""
    started = f", started from {result.warm} of earlier logs" if result.warm else ""
    _say(f"programs measured: {result.trials}{started}\nmodel: {result.model}{head}")
    if result.trials:
        _say(f"log: {result.log}\ncurve: {result.curve}")
    _say(f"best programs: {result.best}\nreport: {result.report}")
    if result.library is None:
        _say(f"library: none, {result.no_library}")
    else:
        from tlp_tvm.tuning.network.tuned_library import line_that_runs

        _say(f"library: {result.library}, run by\n  {line_that_runs(result.library.parent)}")


def _print_operators(result: TuneResult) -> None:
    """Where the time of the tuned network goes."""
    from rich.table import Table

    if not result.operators or result.end_to_end is None:
        return
    from tlp_tvm.tuning.network.operator_times import explained

    flops = {task.workload_key: task.flops for task in result.tasks}
    whole = sum(each.seconds for each in result.operators)
    table = Table(title="the tuned network, by operator", title_justify="left")
    table.add_column("operator", overflow="fold")
    for name in ("x", "label ms", "inside ms", "GFLOP/s", "of peak", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    shown = [each for each in result.operators if each.seconds >= _SHOWN * whole]
    for each in shown:
        rate = flops.get(each.task, 0.0) / each.inside / 1e9
        table.add_row(
            each.name.removeprefix("tvmgen_default_fused_"),
            str(each.count),
            "-" if each.label is None else f"{each.label * 1e3:.3g}",
            f"{each.inside * 1e3:.3g}",
            f"{rate:.3g}" if rate > 0 else "-",
            f"{rate * 1e9 / result.peak:.0%}" if rate > 0 else "-",
            f"{each.seconds / whole:.0%}",
        )
    print_table(table)
    if len(shown) < len(result.operators):
        rest = whole - sum(each.seconds for each in shown)
        _say(f"{len(result.operators) - len(shown)} more operators: {rest / whole:.1%} in all")
    parts = explained(result.operators, result.end_to_end.tuned_latency)
    _say(
        f"labels {parts['labels'] * 1e3:.3g} ms, {parts['inside'] * 1e3:+.2g} inside the network, "
        f"{parts['others'] * 1e3:+.2g} of operators without a label, {parts['between'] * 1e3:+.2g} between: "
        f"{result.end_to_end.tuned_latency * 1e3:.4g} ms"
    )
    if result.at_peak is not None:
        _say(
            f"at the processor's peak, {result.peak / 1e9:.3g} GFLOP/s, its "
            f"{result.operations / 1e9:.3g} GFLOP take {result.at_peak * 1e3:.3g} ms"
        )


def _say_times(ended: EndToEnd) -> None:
    from tlp_tvm.tuning.network.turns import ROUNDING

    _say(
        f"untuned {ended.untuned_latency * 1e3:.4g} ms, tuned {ended.tuned_latency * 1e3:.4g} ms: "
        f"{ended.speedup:.2f}x (outputs differ by {ended.difference:.1g})"
    )
    if ended.difference > ROUNDING:
        _say("the outputs differ by more than rounding: do not use these records")


def _say(text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)
