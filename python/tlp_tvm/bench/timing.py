"""Timing of all benchmarks, and the machine they ran on."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Rate:
    """Items per second over several repeats."""

    best: float
    median: float
    repeats: int


def rate_of(work: Callable[[], object], items: int, *, seconds: float = 1.0, least: int = 3) -> Rate:
    """Repeat `work`, which handles `items` items, for about `seconds`.

    Other work on a shared machine only slows a repeat down, so ratios compare the best repeats.
    """
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < least or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    times.sort()
    return Rate(best=items / times[0], median=items / times[len(times) // 2], repeats=len(times))


@dataclass(frozen=True)
class Work:
    """Work to time."""

    do: Callable[[], object]
    items: int
    """Items per call."""


def best_rates(works: dict[str, Work], *, seconds: float = 1.0, turns: int = 4) -> dict[str, float]:
    """Items per second of several works, in turns of a part of `seconds` each.

    Other work on the machine lasts longer than a turn, so it affects all of them alike.
    """
    best = dict.fromkeys(works, 0.0)
    for _ in range(turns):
        for name, work in works.items():
            rate = rate_of(work.do, work.items, seconds=seconds / turns, least=1)
            best[name] = max(best[name], rate.best)
    return best


@dataclass
class Cost:
    """Time of one piece of work, best of several repeats."""

    seconds: float = math.inf
    cpu_seconds: float = math.inf
    """Of all threads, system time included; more reliable than the clock on a busy machine."""


def costs_of(works: dict[str, Callable[[], object]], *, rounds: int) -> dict[str, Cost]:
    """Do each piece of work once per round, so that other work on the machine affects all alike."""
    costs = {name: Cost() for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start, cpu_start = time.perf_counter(), time.process_time()
            result = work()
            cost = costs[name]
            cost.seconds = min(cost.seconds, time.perf_counter() - start)
            cost.cpu_seconds = min(cost.cpu_seconds, time.process_time() - cpu_start)
            del result  # outside the clock; its memory is reused
    return costs


def machine() -> dict[str, str]:
    """CPU, cores and commit: the conditions of a figure."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {"cpu": model, "cores": str(len(os.sched_getaffinity(0))), "commit": _commit()}


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def peak_memory() -> int:
    """Peak memory of this process in KiB; getrusage would include its parent's before the fork."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))
