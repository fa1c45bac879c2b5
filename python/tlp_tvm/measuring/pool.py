"""Compiles and times programs in processes that live as long as the tuning.

TVM's own builders and runners start new children for every few programs, and each imports TVM first. These
stay. They compile side by side, and then time one program after the other with nothing else going on. A child
that crashes, hangs or is killed costs the program that it was at; it is replaced.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tlp_tvm.latency import latency_of_costs
from tlp_tvm.measuring import child as child_side
from tlp_tvm.measuring.child import Outcome, Timing
from tlp_tvm.measuring.code_kinds import FOLDED
from tlp_tvm.measuring.yardstick import WORTH_IT

if TYPE_CHECKING:
    from typing_extensions import Self

BUILD_TIMEOUT, RUN_TIMEOUT = 6, 7
REASONS = {
    child_side.INSTANTIATION: "schedule cannot be applied",
    child_side.COMPILE: "does not compile",
    child_side.RUNTIME: "does not run",
    BUILD_TIMEOUT: "compiles too long",
    RUN_TIMEOUT: "runs too long",
}
"""TVM's error number to words."""

FAILED_COST = 1e10
"""What TVM's records have as the cost of a program that failed, in seconds."""

_LATE_S = 1.0
"""A child that says this much too late that its time is over was stopped meanwhile."""

_TRIES = 3

_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM)
"""How a process ends that did not end itself; it crashes with other signals."""

_GONE_S = 60
"""A killed process is gone sooner, however busy the machine is."""


@dataclass(frozen=True)
class MeasureSettings:
    """How programs are compiled and timed.

    Attributes:
        children: that compile side by side.
        threads: of a measured program.
        timing: how often and how long a program runs.
        build_timeout_s: for one program.
        run_timeout_s: for one program, all timings together.
        hopeless: a program that takes this many times as long as the best of its task is timed for one run
            alone; 0 times all alike.
        again: how many times a program is timed again, after the others of its batch, if the machine was
            slower than before while it was timed, and it may be among the fastest (`yardstick`).
        code: how they become machine code: "folded", "plain", or the name of an LLVM that is not TVM's
            (`measuring.code_kinds`). Files that do not say which are of "plain".
    """

    children: int = 2
    threads: int = 1
    timing: Timing = field(default_factory=Timing)
    build_timeout_s: int = 20
    run_timeout_s: int = 10
    hopeless: float = 0.0
    again: int = 1
    code: str = FOLDED

    def at_best(self, caches: str, code: str) -> MeasureSettings:
        """The same for a framework, or an earlier log, that has less.

        Args:
            caches: one of `measuring.child.CACHES`; "cold" leaves the choice as it is.
            code: as it can, or as it did.
        """
        timing = self.timing
        if caches != child_side.COLD:
            timing = dataclasses.replace(timing, caches=caches)
        return dataclasses.replace(self, timing=timing, code=code)


class MeasuringPool(abc.ABC):
    """The children; a context manager. A framework says what a program is."""

    def __init__(
        self,
        settings: MeasureSettings,
        log: IO[Any] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Start nothing yet.

        Args:
            settings: how to measure.
            log: a real file for what the children print; nowhere if None.
            check: called between programs; what it raises ends the tuning.
        """
        self.settings = settings
        self._log = log
        self._check = check
        self._children: list[Any] = []
        self._threads: ThreadPoolExecutor | None = None
        self._numbers = 0
        self.spent = {"compile": 0.0, "run": 0.0}
        """Seconds so far."""
        self.best: dict[str, float] = {}
        """Workload key to the lowest latency so far, seconds; for `MeasureSettings.hopeless`."""
        self._owners: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._threads = ThreadPoolExecutor(self.settings.children)
        self._children = [self._start_child() for _ in range(self.settings.children)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._threads is not None
        self._threads.shutdown()
        for child in self._children:
            end(child)
        self._children.clear()
        self._owners.clear()

    @property
    def seconds(self) -> float:
        """Spent on measuring so far."""
        return sum(self.spent.values())

    @property
    def compile_s(self) -> float:
        """Seconds that a child took to compile a program, in the mean of all so far; 0 before the first."""
        return self.spent["compile"] * self.settings.children / self._numbers if self._numbers else 0.0

    def build(self, inputs: Sequence[Any]) -> list[tuple[int, Outcome]]:
        """Compile programs side by side.

        Args:
            inputs: programs of the framework.

        Returns:
            For each its number, to run it by, and what happened.
        """
        began = time.monotonic()
        first = self._numbers
        self._numbers += len(inputs)
        waiting = collections.deque((first + i, self._serialized(inputs[i])) for i in range(len(inputs)))
        outcomes: dict[int, Outcome] = {}
        lock = threading.Lock()

        def work(child: Any) -> None:
            while True:
                with lock:
                    if not waiting:
                        return
                    number, serialized = waiting.popleft()
                self._check()
                outcome = self._compile(child, number, serialized)
                outcomes[number] = outcome
                if not outcome.error:
                    self._owners[number] = child

        assert self._threads is not None
        for done in [self._threads.submit(work, child) for child in self._children]:
            done.result()
        self.spent["compile"] += time.monotonic() - began
        return [(number, outcomes[number]) for number in range(first, first + len(inputs))]

    def run(self, number: int, measure_input: Any, again: bool = False) -> Outcome:
        """Time one compiled program.

        Args:
            number: that `build` gave.
            measure_input: the program, for a child that has lost it.
            again: whether it may be run once more, if its outcome is doubtful.
        """
        self._check()
        began = time.monotonic()
        child = self._owners.pop(number)
        outcome = self._time(child, number, measure_input, again)
        if outcome is None:  # the child was replaced since
            outcome = self._compile(child, number, self._serialized(measure_input))
            if not outcome.error:
                outcome = self._time(child, number, measure_input, again)
        self.spent["run"] += time.monotonic() - began
        outcome = outcome or Outcome((), child_side.RUNTIME, "the child ended", 0.0)
        if outcome.doubtful:
            self._owners[number] = child
        return outcome

    def run_all(
        self, built: Sequence[tuple[int, Outcome]], inputs: Sequence[Any]
    ) -> Iterator[tuple[int, Outcome]]:
        """Time compiled programs one after the other, with nothing else running.

        Args:
            built: what `build` gave for the inputs.
            inputs: programs of the framework.

        Yields:
            The index of a program and its outcome; those that did not compile keep theirs. Programs that were
            timed again come after the others, with the fastest of their timings.
        """
        waiting: dict[int, Outcome] = {}
        for i, (number, compiled) in enumerate(built):
            outcome = compiled
            if not compiled.error:
                outcome = self.run(number, inputs[i], self.settings.again > 0)
            if outcome.doubtful:
                waiting[i] = outcome
            else:
                yield i, outcome
        for left in reversed(range(self.settings.again)):
            for i, before in list(waiting.items()):
                outcome = faster(before, self.run(built[i][0], inputs[i], left > 0))
                if outcome.doubtful:
                    waiting[i] = outcome
                else:
                    del waiting[i]
                    yield i, outcome

    # What a framework gives.

    @abc.abstractmethod
    def _start_child(self) -> Any:
        """A child that lives as long as this process at most (`start_child`)."""

    @property
    @abc.abstractmethod
    def _worker(self) -> Any:
        """What the children do: a module with `build` and `run`."""

    @abc.abstractmethod
    def _serialized(self, program: Any) -> Any:
        """A program on its way to a child."""

    @abc.abstractmethod
    def _key(self, program: Any) -> str:
        """Of its task."""

    @abc.abstractmethod
    def _inputs(self, program: Any) -> tuple[Any, ...]:
        """What a program needs to run besides itself."""

    # And what is the same for all.

    def _compile(self, child: Any, number: int, serialized: Any) -> Outcome:
        seconds = self.settings.build_timeout_s
        outcome = ask(child, BUILD_TIMEOUT, seconds, self._worker.build, number, serialized)
        assert outcome is not None
        return outcome

    def _time(self, child: Any, number: int, measure_input: Any, again: bool) -> Outcome | None:
        settings, key = self.settings, self._key(measure_input)
        timing, best = settings.timing, self.best.get(key, np.inf)
        if best < np.inf:
            timing = dataclasses.replace(timing, short_above_ms=WORTH_IT * best * 1e3)
        if settings.hopeless and best < np.inf:
            bound = settings.hopeless * best * 1e3
            timing = dataclasses.replace(timing, once_above_ms=min(timing.once_above_ms, bound))
        arguments = (number, *self._inputs(measure_input), timing, key, again)
        outcome = ask(child, RUN_TIMEOUT, settings.run_timeout_s, self._worker.run, *arguments)
        if outcome is not None and not outcome.error:
            self.best[key] = min(best, latency_of_costs(outcome.costs))
        return outcome


def faster(first: Outcome, again: Outcome) -> Outcome:
    """Of two timings of a program that one which counts: a machine makes a program slower only.

    Args:
        first: that ran.
        again: the outcome of timing it once more, which may have failed.
    """
    slower = bool(again.error) or latency_of_costs(first.costs) <= latency_of_costs(again.costs)
    costs = first.costs if slower else again.costs
    return Outcome(costs, first.error, first.message, first.seconds + again.seconds, again.doubtful)


def reason_of(outcome: Outcome) -> str:
    """Why a program failed, in words; empty if it did not."""
    if not outcome.error:
        return ""
    words = REASONS.get(outcome.error, f"fails with TVM's error {outcome.error}")
    return f"{words}: {outcome.message}" if outcome.message else words


def start_child(worker: Any, settings: MeasureSettings, log: IO[Any] | None) -> Any:
    """A child that lives as long as this process at most.

    Args:
        worker: TVM's class `PopenWorker`.
        settings: of its programs.
        log: a real file for what it prints; nowhere if None.
    """
    sink = log if log is not None else subprocess.DEVNULL
    return worker(child_side.start, (os.getpid(), settings.threads), stdout=sink, stderr=sink)


def ask(child: Any, timeout_error: int, seconds: float, function: Any, *arguments: Any) -> Outcome | None:
    """Let a child do something; whatever happens to it is an outcome.

    What somebody else did to the child says nothing of the program: if it was killed from outside, or stopped
    until its time was over, it is asked again, `_TRIES` times in all.

    Args:
        child: TVM's `PopenWorker`.
        timeout_error: TVM's error number, should it take too long.
        seconds: that it may take.
        function: for the child, which imports it by name, to call.
        arguments: of the function.

    Returns:
        What the function gave.
    """
    outcome: Outcome | None = None
    for _ in range(_TRIES):
        outcome, disturbed = _ask_once(child, timeout_error, seconds, function, *arguments)
        if not disturbed:
            break
    return outcome


def _ask_once(
    child: Any, timeout_error: int, seconds: float, function: Any, *arguments: Any
) -> tuple[Outcome | None, bool]:
    """The outcome, and whether it is somebody else's doing."""
    began, process = time.monotonic(), None
    try:
        child.send(function, arguments, timeout=seconds)
        began, process = time.monotonic(), child._proc
        answer: Outcome | None = child.recv()
        return answer, False
    except TimeoutError:
        took = time.monotonic() - began  # the child itself looks at the clock, and cannot while it is stopped
        return Outcome((), timeout_error, f"over {seconds} s", took), took > seconds + _LATE_S
    except ChildProcessError:
        outcome = Outcome((), child_side.RUNTIME, "the child ended", time.monotonic() - began)
        return outcome, process is None or process.returncode in _FROM_OUTSIDE  # None: it was just starting
    except Exception as error:  # noqa: BLE001 - what a child says about one program does not end the tuning
        killed = process is not None and process.poll() in _FROM_OUTSIDE  # in the middle of its answer
        end(child)  # the next send starts another
        message = f"{type(error).__name__}: {error}".strip().splitlines()[-1]
        return Outcome((), child_side.RUNTIME, message, time.monotonic() - began), killed


def end(child: Any) -> None:
    """Kill a child and wait until it is gone, for which TVM itself waits a second only.

    Args:
        child: TVM's `PopenWorker`; asked again, it starts another process.
    """
    process = child._proc
    child.kill()
    if process is not None:
        process.wait(_GONE_S)
