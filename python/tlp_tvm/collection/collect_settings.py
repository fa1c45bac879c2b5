"""Settings and result of a collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tlp_tvm.framework import DEFAULT
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.fleet import Fleet
from tlp_tvm.measuring.pool import MeasureSettings

FAR_SLOWER = 5.0
"""Times as slow as a task's best, from which on one run alone tells enough: a fifth of all programs."""


@dataclass(frozen=True)
class CollectSettings:
    """What to collect and how.

    Attributes:
        networks: built-in names, .onnx or TorchScript files (`networks.network_from`).
        out: a dataset folder; an existing one is resumed.
        target: TVM target; empty for this machine's CPU.
        platform: name of the folder's column of labels; empty for one out of the target.
        held_out: whether the networks judge models and teach none: their tasks are then in the split "test".
        programs: wanted of each task, those that the folder has included.
        evolved: share of them that an evolutionary search, led by the task's own measurements, finds; the
            others are random.
        model: what `tlp_tvm.load_model` takes; leads the evolution together with the measurements. Empty for
            none: the programs then owe nothing to what a model prefers. With `labels` the model that chooses;
            empty for the shipped one.
        programs_from: a dataset folder, or one platform's folder in it; its programs are measured instead of
            new ones.
        labels: how many of those, or what share ("400", "7%"): blocks of them that a model finds unlike each
            other and is unsure of. Empty for all.
        budget_s: after how many seconds to stop; None for never.
        busy: cores that other processes may use; while they use more, nothing is timed. 0 never waits.
        seed: of the sampling and the search.
        batch: programs that are compiled before they are timed one by one.
        fleet: remote devices to measure on; None for this machine.
        measure: how to compile and time; `threads` 0 takes the cores that the target names.
        framework: whose programs; one of `framework.FRAMEWORKS`.
    """

    networks: tuple[str, ...]
    out: Path
    target: str = ""
    platform: str = ""
    held_out: bool = False
    programs: int = 64
    evolved: float = 0.5
    model: str = ""
    programs_from: Path | None = None
    labels: str = ""
    budget_s: float | None = None
    busy: float = 0.0
    seed: int = 0
    batch: int = 32
    fleet: Fleet | None = None
    measure: MeasureSettings = field(
        default_factory=lambda: MeasureSettings(
            threads=0, timing=Timing(min_repeat_ms=12), hopeless=FAR_SLOWER
        )
    )
    framework: str = DEFAULT


@dataclass(frozen=True)
class CollectResult:
    """What a call of `collect` did.

    Attributes:
        platform: the label of the measurements.
        tasks: of the networks, each counted once.
        programs: of these tasks that the folder now holds, failed ones included.
        measured: how many of them this call measured.
        failures: why programs of this call failed, in words, and how many.
        seconds: where the time of this call went: "plan", "build", "wait", "run".
        finished: whether nothing is left to do; if not, the same call resumes.
    """

    platform: str
    tasks: int
    programs: int
    measured: int
    failures: dict[str, int]
    seconds: dict[str, float]
    finished: bool
