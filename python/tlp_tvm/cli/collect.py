"""`tlp-tvm collect`: measure programs of networks for a dataset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
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
)
from tlp_tvm.cli.parts.progress import MeasuringProgress, measuring_progress

if TYPE_CHECKING:
    from tlp_tvm.collection import CollectResult
    from tlp_tvm.measuring.fleet import Fleet

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def collect(
    networks: Annotated[
        list[str],
        typer.Argument(
            metavar="NET...", help="Networks: names such as resnet_18-224, .onnx or TorchScript files."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Dataset folder; an existing one is resumed.")],
    target: Annotated[str, typer.Option(help="TVM target. Default: this machine's CPU.")] = "",
    platform: Annotated[
        str,
        typer.Option(help="Name of the platform. Default: its processor, vectors, threads: zen4-avx512-2t."),
    ] = "",
    held_out: Annotated[
        bool, typer.Option("--test", help="Mark the tasks as test tasks, which judge models and teach none.")
    ] = False,
    programs: Annotated[int, typer.Option(min=1, help="Programs per task, earlier ones included.")] = 64,
    evolved: Annotated[
        float, typer.Option(min=0, max=1, help="Share of evolved programs; the others are random.")
    ] = 0.5,
    model: Annotated[
        str,
        typer.Option(
            help="Model that leads the evolution together with the measurements: a shipped name or a "
            "folder. With --labels it chooses the programs; default there: the shipped model."
        ),
    ] = "",
    programs_from: Annotated[
        Path | None,
        typer.Option(help="Measure the programs of this dataset folder, or of one platform in it."),
    ] = None,
    labels: Annotated[
        str,
        typer.Option(
            metavar="N|N%",
            help="With --programs-from: measure this many, or this share, in blocks of programs that "
            "differ and whose speed the model is unsure of.",
        ),
    ] = "",
    budget: Annotated[str, typer.Option(help="Stop after this time, e.g. 2h or 1h30m; resume later.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of sampling and evolution.")] = 0,
    tracker: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Measure on the devices of this RPC tracker.")
    ] = "",
    key: Annotated[str, typer.Option(help="Key of the tracker's devices.")] = "",
    realtime: Annotated[
        bool, typer.Option(help="Keep other work off the core that times; needs root or CAP_SYS_NICE.")
    ] = False,
    busy: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="CORES",
            help="Wait while other processes keep more than this many cores busy; 0 never waits.",
        ),
    ] = 0.25,
    framework: FrameworkOption = "ansor",
    as_json: JsonOption = False,
) -> None:
    """Measure programs of networks: random ones of every task first, then evolved ones.

    The folder is a dataset for `tlp-tvm train` and `tlp-tvm dataset build`. Each record is on disk before the
    next program runs: stop at any moment, and the same command resumes. To measure the same programs on
    another platform, give the first folder to --programs-from; --labels 7% chooses some of them.

    Example: tlp-tvm collect resnet_18-224 mobilenet-224 --budget 2h --out data/mine
    """
    from tlp_tvm.collection import CollectSettings
    from tlp_tvm.collection import collect as collect_programs

    settings = CollectSettings(
        networks=tuple(networks),
        out=out,
        target=target,
        platform=platform,
        held_out=held_out,
        programs=programs,
        evolved=evolved,
        model=model,
        programs_from=programs_from,
        labels=labels,
        budget_s=seconds_of(budget),
        busy=busy,
        seed=seed,
        fleet=_fleet(tracker, key),
        framework=framework_of(framework),
    )
    how = settings.measure
    settings = replace(settings, measure=replace(how, timing=replace(how.timing, realtime=realtime)))
    with measuring_progress() as progress:
        result = collect_programs(settings, _observer(progress))
    if as_json:
        print_json({**asdict(result), "out": str(out)})
    else:
        _print(result, out)


def _fleet(tracker: str, key: str) -> Fleet | None:
    from tlp_tvm.cli.fleet import address_of
    from tlp_tvm.measuring.fleet import Fleet

    if bool(tracker) != bool(key):
        raise typer.BadParameter("expected --tracker and --key together, found one", param_hint="--tracker")
    return Fleet(*address_of(tracker), key) if tracker else None


def seconds_of(budget: str) -> float | None:
    """Seconds of a time such as "1h30m", "90m" or "2d"; None for an empty one.

    Raises:
        typer.BadParameter: the text is not a time.
    """
    if not budget:
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", budget)
    if not parts or "".join(number + unit for number, unit in parts) != budget:
        raise typer.BadParameter(
            f'expected a time such as 2h, 90m or 1h30m, found "{budget}"', param_hint="--budget"
        )
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _observer(progress: MeasuringProgress) -> Any:
    from tlp_tvm.collection import CollectObserver

    class Shown(CollectObserver):
        """One line: the step, or programs measured, their rate, tasks done and failures by kind."""

        def __init__(self) -> None:
            self.tasks = 0
            self.waiting = False

        def step(self, words: str) -> None:
            progress.step(words)

        def planned(self, tasks: int, programs: int, known: int) -> None:
            self.tasks = tasks
            if known:
                progress.console.print(f"{known:,} of these programs are measured already")
            progress.step("measuring", programs, known)

        def waits(self, cores: float) -> None:
            if not self.waiting:
                progress.line(f"waiting: other processes keep {cores:.1f} cores busy")
            self.waiting = True
            shown = progress.tasks[0]
            progress.measured(int(shown.completed), f"waiting: others keep {cores:.1f} cores busy")

        def measured(self, programs: int, tasks_done: int, failures: Mapping[str, int]) -> None:
            self.waiting = False
            speed = progress.tasks[0].speed
            notes = [] if not speed else [f"{speed:.1f} programs/s"]
            notes.append(f"{tasks_done} of {self.tasks} tasks done")
            progress.measured(programs, ", ".join(notes + failure_notes(failures)))

    return Shown()


def _print(result: CollectResult, out: Path) -> None:
    seconds = sum(result.seconds.values())
    console.print(
        f"{result.measured:,} programs measured on {result.platform} in {seconds:,.0f} s; "
        f"{out} holds {result.programs:,} of {result.tasks} tasks",
        highlight=False,
        soft_wrap=True,
    )
    for reason, count in result.failures.items():
        console.print(f"{count} programs failed: {reason}", highlight=False, soft_wrap=True)
    if not result.finished:
        console.print("stopped before the end; the same command resumes", highlight=False)
