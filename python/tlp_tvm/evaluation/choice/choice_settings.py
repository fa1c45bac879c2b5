"""Settings and observer of a run that lets models choose."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tlp_tvm.evaluation.choice.regret import KS
from tlp_tvm.framework import DEFAULT
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings


@dataclass(frozen=True)
class ChoiceSettings:
    """Whose choice, of what, and how it is timed.

    Attributes:
        models: what `tlp_tvm.load_model` takes.
        networks: built-in names or files, whose tasks are to be chosen for.
        known: datasets or logs; the fastest programs that they have of a task are timed beside the choices.
        out: folder of the run; an existing one is resumed.
        target: TVM target; empty for this machine's CPU.
        tasks: of each network, those with the most operations first; 0 for all.
        population: programs that are bred in a generation; 0 for as many as `tune` breeds where it measures
            nothing, 10,000 and more in all with Ansor.
        count: of a task's programs that each model chooses.
        seed: of sampling and breeding.
        framework: whose tasks.
        measure: how to compile and time; `threads` 0 takes the cores that the target names.
    """

    models: tuple[str, ...]
    networks: tuple[str, ...]
    known: tuple[Path, ...]
    out: Path
    target: str = ""
    tasks: int = 0
    population: int = 0
    count: int = max(KS)
    seed: int = 0
    framework: str = DEFAULT
    measure: MeasureSettings = field(
        default_factory=lambda: MeasureSettings(threads=0, timing=Timing(min_repeat_ms=12))
    )


class ChoiceObserver:
    """Told how a run goes; does nothing with it."""

    def step(self, words: str) -> None:
        """A step begins, in words."""

    def planned(self, tasks: int, done: int) -> None:
        """The choosing is about to begin.

        Args:
            tasks: of all networks.
            done: how many of them the folder already has.
        """

    def chose(self, done: int, desc: str, words: str) -> None:
        """A task is done.

        Args:
            done: tasks so far.
            desc: TVM's name of it.
            words: what each model's first choice takes beside the best.
        """
