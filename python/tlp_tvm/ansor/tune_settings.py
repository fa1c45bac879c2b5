"""What a tuning is asked for, and what comes of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlp_tvm.ansor.measure import MeasureSettings

if TYPE_CHECKING:
    from tlp_tvm.ansor.cost_model import Scorer
    from tlp_tvm.ansor.end_to_end import EndToEnd


@dataclass(frozen=True)
class TuneSettings:
    """What to tune and how.

    Attributes:
        network: a built-in name (`networks.load_network`).
        out: folder of the run; one that exists is gone on with.
        model: what `tlp_tvm.load_model` takes, or a model.
        target: TVM target; empty for this machine's CPU.
        trials: programs to measure in all, earlier ones of the same run included.
        platform: head of the model; None for the one that the target names, or else the mean of all heads.
        seed: of the search.
        measures_per_round: programs of one task that are measured before the next task is chosen; 0 lets
            every task have two rounds, of 16 programs at most.
        population: programs that breed in a round of the evolutionary search.
        turns: timings of the whole network, untuned and tuned each.
        online: whether the search learns from what it measures; if not, the model alone chooses.
        hide_messages: whether standard error goes to tvm.log during the search, as TVM writes hundreds of
            lines on each program that it gives up on.
        measure: how to compile and time; `threads` 0 takes the cores that the target names.
    """

    network: str
    out: Path
    model: str | Scorer = "epyc"
    target: str = ""
    trials: int = 200
    platform: str | None = None
    seed: int = 0
    measures_per_round: int = 0
    population: int = 512
    turns: int = 9
    online: bool = True
    hide_messages: bool = False
    measure: MeasureSettings = field(default_factory=lambda: MeasureSettings(threads=0))


@dataclass(frozen=True)
class TaskResult:
    """One task of the network.

    Attributes:
        name: TVM's description.
        workload_key: TVM's key.
        weight: how often the task appears in the network.
        flops: floating-point operations of the task.
        trials: programs measured.
        failures: of those, how many failed.
        first: latency of the first program that ran, seconds; infinity if none did.
        best: lowest latency, seconds; infinity if no program ran: the network keeps TVM's own schedule there.
    """

    name: str
    workload_key: str
    weight: int
    flops: float
    trials: int
    failures: int
    first: float
    best: float


@dataclass(frozen=True)
class TuneResult:
    """What came of a tuning.

    Attributes:
        network: its name.
        target: TVM target.
        model: name of the model.
        platform: the head that scored; None for the mean of all.
        trials: programs measured, earlier ones of the same run included.
        reused: how many of them an earlier tuning had measured.
        failures: reason to how many programs failed for it, in this tuning.
        tasks: of the network.
        estimate: weighted sum of the tasks' best, seconds.
        end_to_end: latency of the whole network, untuned and tuned.
        seconds: spent by step: "tasks", "search", "measure", "build".
        log: TVM's record file.
        curve: picture of the estimate against programs measured.
        report: run.json.
    """

    network: str
    target: str
    model: str
    platform: str | None
    trials: int
    reused: int
    failures: dict[str, int]
    tasks: list[TaskResult]
    estimate: float
    end_to_end: EndToEnd
    seconds: dict[str, float]
    log: Path
    curve: Path
    report: Path

    @property
    def unmeasured(self) -> list[TaskResult]:
        """Tasks of which no program ran."""
        return [task for task in self.tasks if task.best == float("inf")]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: times in seconds, infinity as None."""
        ended = self.end_to_end
        value = dataclasses.asdict(self)
        value["end_to_end"] |= {
            "untuned_latency": ended.untuned_latency,
            "tuned_latency": ended.tuned_latency,
            "speedup": ended.speedup,
        }
        value |= {name: str(value[name]) for name in ("log", "curve", "report")}
        for task in value["tasks"]:
            task |= {name: None if task[name] == float("inf") else task[name] for name in ("first", "best")}
        return value
