"""The process of one peer: loads the network, then sleeps until asked to time it.

    python -m tlp_tvm.beside.peer_child PEER NETWORK FOLDER SCRATCH THREADS

Standard output carries one line of JSON an answer; what libraries print goes to standard error.

    at the start      {"ready": true}, or {"problem": "a reason"}; the outputs lie in SCRATCH/PEER.npz
    a line "0.5"      runs the network for so many seconds, at least `LEAST` times:
                      {"stretches": [[median seconds, seconds of a cache line's way before, after], ...]}
    end of the input  the process ends
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm.beside.runtimes import Job, Run, load
from tlp_tvm.machine.core_distance import round_trip

LEAST = 5
"""Runs a turn at least."""

_WARM_UP = 2
"""Runs that wake the threads and warm the caches, before each turn."""

_STRETCH_S, _STRETCH_RUNS = 0.1, 3
"""Of a stretch, at least: a host moves cores for a twentieth of a second and longer, and while they are busy
it moves them elsewhere than while they are not, so it is seen between runs where they are."""


def main(arguments: Sequence[str]) -> None:
    """Load, then time when asked to."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def answer(**content: Any) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    peer, network, folder, scratch, threads = arguments
    job = Job(peer, Path(network), Path(folder), Path(scratch), int(threads))
    try:
        run = load(job)
        np.savez(job.scratch / f"{peer}.npz", *run())
    except Exception as error:  # noqa: BLE001 - whatever a peer cannot do is its answer
        return answer(problem=_reason(error))
    answer(ready=True)
    for line in sys.stdin:
        answer(stretches=_stretches(run, float(line), partial(round_trip, job.threads)))
    return None


def _stretches(run: Run, seconds: float, distance: Callable[[], float]) -> list[tuple[float, float, float]]:
    for _ in range(_WARM_UP):
        run()
    found: list[tuple[float, float, float]] = []
    runs, before, end = 0, distance(), time.perf_counter() + seconds
    while runs < LEAST or time.perf_counter() < end:
        taken: list[float] = []
        stretch_end = time.perf_counter() + _STRETCH_S
        while len(taken) < _STRETCH_RUNS or time.perf_counter() < min(stretch_end, end):
            began = time.perf_counter()
            run()
            taken.append(time.perf_counter() - began)
        after = distance()
        found.append((statistics.median(taken), before, after))
        runs, before = runs + len(taken), after
    return found


def _reason(error: BaseException) -> str:
    """The first line that says something: OpenVINO's first ones end in a colon, after a place in its code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.endswith(":")] or lines
    return f"{type(error).__name__}: {telling[0].rstrip('.')}" if lines else type(error).__name__


if __name__ == "__main__":
    main(sys.argv[1:])
