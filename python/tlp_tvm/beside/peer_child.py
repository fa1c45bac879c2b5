"""The process of one peer: loads the network, then sleeps until asked to time it.

    python -m tlp_tvm.beside.peer_child PEER NETWORK FOLDER SCRATCH THREADS

Standard output carries one line of JSON an answer; what libraries print goes to standard error.

    at the start      {"ready": true}, or {"problem": "a reason"}; the outputs lie in SCRATCH/PEER.npz
    a line "0.5"      runs the network for so many seconds, at least `LEAST` times: {"seconds": median}
    end of the input  the process ends
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm.beside.runtimes import Job, Run, load

LEAST = 5
"""Runs a turn at least."""

_WARM_UP = 2
"""Runs that wake the threads and warm the caches, before each turn."""


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
        answer(seconds=_median(run, float(line)))
    return None


def _median(run: Run, seconds: float) -> float:
    for _ in range(_WARM_UP):
        run()
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < LEAST or time.perf_counter() < end:
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _reason(error: BaseException) -> str:
    """The first line that says something: OpenVINO's first ones end in a colon, after a place in its code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.endswith(":")] or lines
    return f"{type(error).__name__}: {telling[0].rstrip('.')}" if lines else type(error).__name__


if __name__ == "__main__":
    main(sys.argv[1:])
