"""Settings and result of a tuning."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tlp_tvm.adapting.search_scores import Scorer
from tlp_tvm.errors import TuningError
from tlp_tvm.framework import DEFAULT
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.network.operator_times import OperatorTime, explained
from tlp_tvm.tuning.network.turns import EndToEnd

CHOICES = ("diverse", "top")

MOST_PER_ROUND = 16
"""Most programs of a round by default; a round's evolution takes about as long as measuring that many."""


def measures_per_round(trials: int, tasks: int) -> int:
    """Programs of a round that give every task two rounds, but not more than are worth an evolution.

    Args:
        trials: programs to measure in all.
        tasks: of the network.
    """
    return max(1, min(MOST_PER_ROUND, trials // (2 * tasks)))


UNBOUNDED_TRIALS = 100_000
"""Programs to measure where only time limits a tuning; from so many on, none says of how many."""


def usual_trials(minutes: float) -> int:
    """Programs to measure where nobody says how many.

    Args:
        minutes: that a tuning may take; 0 for no limit.
    """
    return UNBOUNDED_TRIALS if minutes else TuneSettings.trials


@dataclass(frozen=True)
class TuneSettings:
    """What to tune and how.

    Attributes:
        network: a built-in name or the path of a file, as the framework reads it.
        out: folder of the run; an existing run is resumed.
        model: what `tlp_tvm.load_model` takes, or a model, or one that the framework has itself by name;
            empty for the one that the run began with, or else the framework's own.
        target: TVM target; empty for this machine's CPU.
        trials: programs to measure in all, earlier ones of the same run included; 0 measures none, and the
            model alone chooses, for a target that need not be at hand.
        platform: head of the model, or "mean" for the mean of all; None for the one that the target names, or
            else "mean".
        seed: of the search.
        measures_per_round: programs of one task that are measured before the next task is chosen; 0 lets
            every task have two rounds, of 16 programs at most.
        population: programs that breed in a round of the evolutionary search; 0 for the framework's own.
        turns: timings of the whole network, untuned and tuned each.
        online: whether the search learns from what it measures; if not, the model alone chooses.
        hide_messages: whether standard error goes to tvm.log during the search, as TVM writes hundreds of
            lines on each program that it gives up on.
        measure: how to compile and time; `threads` 0 takes the cores that the target names.
        shapes: of inputs that the network's file leaves open, by name.
        warm_start: record files or folders of earlier runs, whose programs of the same tasks are learned from
            and bred from; they are no trials of this run.
        similar: whether programs that `warm_start` holds of the same operators at other shapes are made to
            fit, and measured first, where it holds none of a task.
        choose: which of the programs found are measured, one of `CHOICES`: "diverse", what they may teach
            counting too, or "top", as TVM picks.
        framework: that searches, one of `framework.FRAMEWORKS`.
        minutes: that this call may take, builds included; at least half of them are for measuring. 0 for no
            limit.
        whole: whether the network is built, before the search and with what it found, and timed; if not, it
            ends with the programs.
    """

    network: str
    out: Path
    model: str | Scorer = ""
    target: str = ""
    trials: int = 200
    platform: str | None = None
    seed: int = 0
    measures_per_round: int = 0
    population: int = 0
    turns: int = 9
    online: bool = True
    hide_messages: bool = False
    measure: MeasureSettings = field(default_factory=lambda: MeasureSettings(threads=0))
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    warm_start: tuple[Path, ...] = ()
    similar: bool = False
    choose: str = CHOICES[0]
    framework: str = DEFAULT
    minutes: float = 0.0
    whole: bool = True

    def __post_init__(self) -> None:
        """Refuse what is no choice."""
        if self.choose not in CHOICES:
            raise TuningError(f'`choose`: expected one of {", ".join(CHOICES)}, found "{self.choose}"')


@dataclass(frozen=True)
class TaskResult:
    """One task of the network.

    Attributes:
        name: TVM's description.
        workload_key: TVM's key.
        weight: how often the task appears in the network.
        flops: floating-point operations of the task; negative where TVM cannot count them.
        trials: programs measured.
        failures: of those, how many failed.
        first: latency of the first program that ran, seconds; infinity if none did.
        best: lowest latency, seconds, of earlier logs' programs too; infinity if no program ran.
        chosen: whether the network has a program that was measured there, or that the model chose; if not,
            TVM's own schedule.
    """

    name: str
    workload_key: str
    weight: int
    flops: float
    trials: int
    failures: int
    first: float
    best: float
    chosen: bool


@dataclass(frozen=True)
class TuneResult:
    """What came of a tuning.

    Attributes:
        network: its name.
        target: TVM target.
        model: name of the model.
        platform: the head that scored; "mean" for the mean of all.
        trials: programs measured, earlier ones of the same run included.
        reused: how many of them an earlier tuning had measured.
        warm: programs of earlier logs that it started from.
        failures: reason to how many programs failed for it, in this tuning.
        tasks: of the network.
        estimate: weighted sum of the tasks' best, seconds; infinity where nothing was measured.
        end_to_end: latency of the whole network, untuned and tuned; None where this machine cannot run it.
        operators: the tuned network, operator by operator, heaviest first; empty where that is not known.
        peak: float32 operations a second that the processor does at most, on the network's threads; 0 where
            there are no `operators`.
        changed_inside: tasks whose program is not the one of the lowest label: inside, another is faster.
        kept_untuned: whether the library is the untuned network, as the tuned one was no faster.
        seconds: spent by step, as "tasks", "search", "measure" and "build"; by earlier calls of the run too.
        log: TVM's record file.
        best: record file with the program that was taken of each task, for `ApplyHistoryBest`.
        library: the compiled network, which `load_tuned` of its folder runs; None where it did not compile.
        no_library: why it did not.
        curve: picture of the estimate against programs measured; None where nothing was measured.
        report: run.json.
    """

    network: str
    target: str
    model: str
    platform: str
    trials: int
    reused: int
    warm: int
    failures: dict[str, int]
    tasks: list[TaskResult]
    estimate: float
    end_to_end: EndToEnd | None
    operators: list[OperatorTime]
    peak: float
    kept_untuned: bool
    changed_inside: int
    seconds: dict[str, float]
    log: Path
    best: Path
    library: Path | None
    no_library: str
    curve: Path | None
    report: Path

    @property
    def unmeasured(self) -> list[TaskResult]:
        """Tasks that keep TVM's own schedule."""
        return [task for task in self.tasks if not task.chosen]

    @property
    def operations(self) -> float:
        """Of one run of the network, as far as its tasks have them."""
        return sum(task.flops * task.weight for task in self.tasks)

    @property
    def at_peak(self) -> float | None:
        """Seconds that these take at the peak; None where that is not known."""
        return self.operations / self.peak if self.peak else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON: times in seconds, infinity as None."""
        ended = self.end_to_end
        value = dataclasses.asdict(self) | {"at_peak": self.at_peak}
        if ended is not None:
            value["end_to_end"] |= {
                "untuned_latency": ended.untuned_latency,
                "tuned_latency": ended.tuned_latency,
                "speedup": ended.speedup,
            }
            value["explained"] = explained(self.operators, ended.tuned_latency) if self.operators else None
        for name in ("log", "best", "library", "curve", "report"):
            value[name] = None if value[name] is None else str(value[name])
        value["estimate"] = None if math.isinf(self.estimate) else self.estimate
        for task in value["tasks"]:
            task |= {name: None if math.isinf(task[name]) else task[name] for name in ("first", "best")}
        return value
