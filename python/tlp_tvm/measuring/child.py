"""A measuring process of any framework: it ends with its parent, keeps programs and times them on request.

Children are TVM's own popen workers, which import this module by name; it must stay light, and knows no TVM:
a framework's `measuring.work` compiles. A program stays in the child that compiled it, so nothing is linked,
written to disk or loaded again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tlp_tvm.latency import latency_of_costs
from tlp_tvm.machine.loop_threads import SPINS, VARIABLE
from tlp_tvm.measuring.yardstick import Yardsticks

NO_ERROR, INSTANTIATION, COMPILE, RUNTIME = 0, 1, 2, 4
"""TVM's `MeasureErrorNo`."""

_ORPHAN_POLL_S = 0.5

_SPINS = "20000"
"""Times that TVM's threads look for work before they sleep: some 6 ms. TVM's own 300,000 keep the core of one
child busy while the next one's program is timed, or while both compile."""

_PAUSE = 0.15
"""Share of its time that a timing at a real-time priority waits afterwards; see `_undisturbed`."""

COLD, WARM = "cold", "warm"
CACHES = (COLD, WARM)

_FEWEST, _MOST = 3, 100
"""Runs of a timing with cold caches, whose median it is."""

T = TypeVar("T")


@dataclass(frozen=True)
class Timing:
    """How a compiled program is timed.

    Attributes:
        repeat: timings, after a run that is not timed.
        min_repeat_ms: each timing repeats the program until this much time has passed.
        once_above_ms: a program that takes longer than this is timed for one run alone.
        short_above_ms: a program that takes longer than this has one timing, not `repeat`; 0 for none.
        realtime: whether nothing else runs on a core that times (needs the right to a real-time priority).
        caches: one of `CACHES`: "cold", without the weights before each run of a program for a CPU, as when a
            network runs; or "warm", as a program that runs over and over leaves them. Files that do not say
            which are of "warm".
    """

    repeat: int = 3
    min_repeat_ms: int = 20
    once_above_ms: float = 150.0
    short_above_ms: float = 0.0
    realtime: bool = False
    caches: str = COLD

    def is_enough(self, seconds: float) -> bool:
        """Whether the first timing of a program says already that it is slow."""
        return 0 < self.short_above_ms < seconds * 1e3


@dataclass(frozen=True)
class Outcome:
    """What happened to one program in a child.

    Attributes:
        costs: seconds a run, one for each repeat; empty after a build or an error.
        error: TVM's error number.
        message: the last line of the error.
        seconds: spent on it.
        doubtful: whether the machine was slower than before while it was timed; the child still has it.
        code: of a compiled program, where the framework can use it again.
    """

    costs: tuple[float, ...]
    error: int
    message: str
    seconds: float
    doubtful: bool = False
    code: Any = None


_yardsticks = Yardsticks()


def start(parent: int, threads: int) -> None:
    """Prepare a fresh child.

    Args:
        parent: process id to live and die with.
        threads: of measured programs.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    os.environ[VARIABLE] = str(threads)  # both are read when the first parallel loop runs
    os.environ.setdefault(SPINS, _SPINS)
    with contextlib.suppress(OSError):  # where memory runs out, a child shall go first
        Path("/proc/self/oom_score_adj").write_text("1000")


def run_kept(
    programs: dict[int, T],
    number: int,
    costs_of: Callable[[T, Timing], tuple[float, ...]],
    timing: Timing,
    task: str,
    again: bool,
) -> Outcome | None:
    """Time a program that a child has kept.

    Args:
        programs: that it has; loses this one, unless it is doubtful.
        number: of the program.
        costs_of: times it: seconds of each repeat.
        timing: how.
        task: whose program it is.
        again: whether it will be timed again if it is doubtful.

    Returns:
        None if it does not have the program.
    """
    began = time.monotonic()
    program = programs.pop(number, None)
    if program is None:
        return None
    once = dataclasses.replace(timing, repeat=1)
    doubtful = False
    try:
        costs = costs_of(program, timing)
        _yardsticks.note(task, costs, lambda: latency_of_costs(costs_of(program, once)))
        if again and min(costs) * 1e3 <= timing.once_above_ms:
            doubtful = _yardsticks.doubtful(task, costs)
    except Exception:  # noqa: BLE001 - whatever a generated program does costs that program only
        return Outcome((), RUNTIME, last_line(), time.monotonic() - began)
    if doubtful:
        programs[number] = program
    return Outcome(costs, NO_ERROR, "", time.monotonic() - began, doubtful)


def timed(module: Any, device: Any, arrays: list[Any], timing: Timing, cool: str = "") -> tuple[float, ...]:
    """Run a program over and over.

    Args:
        module: TVM's, here or on a remote device.
        device: where its arguments are.
        arrays: its arguments.
        timing: how.
        cool: name of the function of TVM's that takes the weights among the arguments out of the caches,
            called before each run; empty to leave them there.

    Returns:
        Seconds a run, one for each repeat: the mean of its runs, or with cold weights their median.
    """
    entry = module[module.entry_name]

    def run_once() -> float:
        with _undisturbed(timing.realtime):
            began = time.perf_counter()
            entry(*arrays)
            device.sync()
            return time.perf_counter() - began

    for _ in range(2):  # only the second counts
        once = run_once()
        if once * 1e3 <= timing.once_above_ms:
            break
    else:
        return (once,)
    if cool:
        return _timed_cold(module, device, arrays, timing, cool)
    if timing.realtime and once * 1e3 > timing.min_repeat_ms:
        return _repeated(run_once, timing)
    timer = module.time_evaluator(
        module.entry_name, device, number=1, repeat=1, min_repeat_ms=timing.min_repeat_ms
    )

    def seconds() -> float:
        with _undisturbed(timing.realtime):
            return float(timer(*arrays).mean)

    return _repeated(seconds, timing)


def _timed_cold(module: Any, device: Any, arrays: list[Any], timing: Timing, cool: str) -> tuple[float, ...]:
    """Medians of runs that each begin with cold weights."""

    def seconds_of(runs: int) -> list[float]:
        timer = module.time_evaluator(module.entry_name, device, number=1, repeat=runs, f_preproc=cool)
        with _undisturbed(timing.realtime):
            return [float(cost) for cost in timer(*arrays).results]

    began = time.perf_counter()
    first = statistics.median(seconds_of(_FEWEST))
    each = (time.perf_counter() - began) / (_FEWEST + 1)  # the timer has a run of its own before
    if timing.is_enough(first):
        return (first,)
    runs = min(_MOST, max(_FEWEST, int(timing.min_repeat_ms * 1e-3 / each)))
    found = seconds_of(runs * timing.repeat)  # in one go: emptying the caches takes longer than most programs
    return tuple(statistics.median(found[i * runs : (i + 1) * runs]) for i in range(timing.repeat))


def _repeated(seconds: Callable[[], float], timing: Timing) -> tuple[float, ...]:
    """A timing, and the others where it does not say already that the program is slow."""
    first = seconds()
    again = 0 if timing.is_enough(first) else timing.repeat - 1
    return (first, *(seconds() for _ in range(again)))


@contextlib.contextmanager
def _undisturbed(realtime: bool) -> Iterator[None]:
    """A real-time priority for all threads of this process, and a pause after it, if asked for.

    All threads: TVM's pool may be there already, and a main thread that waits for a worker of a lower
    priority on the same core keeps it from running. Linux stops all that runs at such a priority for 50 ms
    once it has had 950 of 1,000 ms, in the middle of whatever is being timed.
    """
    if not realtime:
        yield
        return
    began = time.perf_counter()
    _schedule_all(os.SCHED_FIFO, 1)
    try:
        yield
    finally:
        _schedule_all(os.SCHED_OTHER, 0)
        time.sleep(_PAUSE * (time.perf_counter() - began))


def _schedule_all(policy: int, priority: int) -> None:
    """Give every thread of this process a priority; those that start later have that of who starts them."""
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread that ends meanwhile
            os.sched_setscheduler(int(thread.name), policy, os.sched_param(priority))


def realtime_allowed() -> bool:
    """Whether this process may ask for the priority that `Timing.realtime` is about."""
    try:
        with _undisturbed(True):
            return True
    except PermissionError:
        return False


def last_line() -> str:
    """Of the traceback of the error that is being handled."""
    lines = [line for line in traceback.format_exc().splitlines() if line.strip()]
    return lines[-1].strip()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even in the middle of a program that runs for ever."""
    while os.getppid() == parent:
        time.sleep(_ORPHAN_POLL_S)
    os._exit(1)
