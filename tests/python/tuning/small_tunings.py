"""Tunings of a small network, and what an observer is told of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scorers import LinearScorer
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_settings import TuneSettings

NETWORK, TASKS = "mlp", 4
TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


def settings(out: Path, **changes: Any) -> TuneSettings:
    values = {"model": LinearScorer(), "target": TARGET, "trials": 2 * TASKS, "population": 64, "turns": 3}
    measure = MeasureSettings(timing=Timing(repeat=1, min_repeat_ms=1), threads=0)
    return TuneSettings(**{"network": NETWORK, "out": out, "measure": measure, **values, **changes})


class Told(TuneObserver):
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.plan: tuple[int, ...] = ()
        self.rounds: list[str] = []
        self.programs: list[tuple[int, float]] = []

    def step(self, name: str) -> None:
        self.steps.append(name)

    def planned(self, tasks: int, trials: int, reused: int) -> None:
        self.plan = (tasks, trials, reused)

    def round(self, task: str) -> None:
        self.rounds.append(task)

    def measured(self, trials: int, estimate: float, failures: Mapping[str, int]) -> None:
        self.programs.append((trials, estimate))
