"""Times a whole network untuned and tuned, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.machine.loop_threads import loop_threads

_SMALL = 1e-3
"""Outputs are compared as if their largest value were at least this: below, the rounding of a tanh shows."""

ROUNDING = 1e-4
"""Relative difference of outputs that another order of additions explains."""

RUNS_MS = 100
"""A timing repeats the network until this much time has passed."""

LEAST_TURNS, LONGEST_S = 3, 8.0
"""After so many turns and seconds no further one begins: an untuned network may take seconds a run."""

FAR = 5.0
"""A network that takes so many times as long as the other has one turn, if that takes `LONGEST_S`."""

_LONG_RUN_S = 1.0
"""A run that takes longer is timed by itself: without one before that warms up, and not repeated."""

T = TypeVar("T")

Runner = tuple[Callable[[], float], Callable[[], list[NDArray[Any]]]]
"""Functions that time a network once, seconds, and that run it and give its outputs."""


@dataclass(frozen=True)
class EndToEnd:
    """Latency of a network in seconds, untuned and tuned, timed in turns so that noise hits both alike.

    Attributes:
        untuned: seconds of each timing of the network as TVM builds it without records.
        tuned: seconds of each timing of the network built from the records.
        difference: largest difference of an output value, relative to the largest value of that output, or
            to 0.001 where that is larger.
    """

    untuned: tuple[float, ...]
    tuned: tuple[float, ...]
    difference: float

    @property
    def untuned_latency(self) -> float:
        """Median, seconds."""
        return float(np.median(self.untuned))

    @property
    def tuned_latency(self) -> float:
        """Median, seconds."""
        return float(np.median(self.tuned))

    @property
    def speedup(self) -> float:
        """How many times faster the tuned network is."""
        return self.untuned_latency / self.tuned_latency


def seconds_of(run: Callable[[], None], timed: Callable[[], float]) -> float:
    """Time a network once.

    Args:
        run: runs it, and waits for the end.
        timed: seconds of a run, of several after one that warms up.
    """
    began = time.perf_counter()
    run()
    once = time.perf_counter() - began
    return once if once > _LONG_RUN_S else timed()


def time_in_turns(
    make: Sequence[Callable[[], Runner]],
    turns: int,
    threads: int,
    clock: Callable[[], float] = time.monotonic,
) -> EndToEnd:
    """Run both in turns on the same input.

    Args:
        make: what prepares the untuned and the tuned network, in the thread that will run them.
        turns: timings of each; fewer, but `LEAST_TURNS`, where they take longer than `LONGEST_S`.
        threads: to run with.
        clock: seconds.
    """
    return in_fresh_thread(lambda: _time_in_turns(make, turns, clock), threads)


def in_fresh_thread(work: Callable[[], T], threads: int) -> T:
    """Run something where TVM's parallel loops have so many threads.

    TVM makes a thread pool for each thread that runs a parallel loop, and asks then for the number.

    Args:
        work: what to run.
        threads: of its parallel loops.
    """
    with loop_threads(threads), ThreadPoolExecutor(1) as fresh_thread:
        return fresh_thread.submit(work).result()


def _time_in_turns(make: Sequence[Callable[[], Runner]], turns: int, clock: Callable[[], float]) -> EndToEnd:
    times: tuple[list[float], list[float]] = ([], [])
    runs = [prepare() for prepare in make]
    outputs = [outputs_of() for _, outputs_of in runs]  # also warms both up
    began = clock()
    for turn in range(turns):
        if turn and clock() - began > LONGEST_S and (turn >= LEAST_TURNS or _far_apart(*times)):
            break
        for (time_it, _), seconds in zip(runs, times, strict=True):
            seconds.append(time_it())
    return EndToEnd(tuple(times[0]), tuple(times[1]), difference_of(*outputs))


def _far_apart(first: Sequence[float], second: Sequence[float]) -> bool:
    low, high = sorted([statistics.median(first), statistics.median(second)])
    return high > FAR * low


def random_values(
    shape: Sequence[int], dtype: str, generator: np.random.Generator, below: int | None = None
) -> NDArray[Any]:
    """Standard normal numbers; of another type, integers from 0.

    Args:
        shape: of the array.
        dtype: NumPy's name of the type.
        generator: drawn from.
        below: the integers are below this; None for zeros.
    """
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return generator.standard_normal(shape).astype(kind)
    return generator.integers(0, below or 1, shape).astype(kind)


def difference_of(expected: Sequence[NDArray[Any]], found: Sequence[NDArray[Any]]) -> float:
    """Largest difference of an output value, as `EndToEnd.difference` has it.

    Args:
        expected: outputs of a network.
        found: outputs of the same shapes.
    """
    return max(
        float(np.abs(a.astype(np.float64) - b).max() / max(float(np.abs(a).max()), _SMALL))
        for a, b in zip(expected, found, strict=True)
    )
